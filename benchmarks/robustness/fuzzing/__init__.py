"""Corrupted inputs for every reader: mutations, independent readers, and supervision of the reading process."""
