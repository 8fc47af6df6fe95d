"""Scripts that reproduce the tables of the paper and of published datasets, and make the bundled models."""
