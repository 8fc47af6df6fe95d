"""``python -m graphite_gen`` runs the command line."""

from graphite_gen.cli.main import run

if __name__ == "__main__":
    run()
