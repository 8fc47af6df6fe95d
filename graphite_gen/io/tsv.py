"""TSV: a table of edges like CSV, separated by tabs."""

from functools import partial

from .csv import read
from .csv import write as write_csv

__all__ = ["read", "write"]

write = partial(write_csv, delimiter="\t")
