"""``python -m graphite_gen`` is ``graphite-gen``."""

from graphite_gen.cli.main import run

if __name__ == "__main__":
    run()
