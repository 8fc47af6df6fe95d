"""Bundled models, one folder each; see 'make checkpoints'."""
