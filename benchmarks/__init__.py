"""Scripts behind the figures of the documentation, run as modules: ``python -m benchmarks.reproduce.density``."""
