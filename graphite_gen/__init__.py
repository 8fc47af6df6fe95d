"""graphite-gen."""

__version__ = "0.1.0"
