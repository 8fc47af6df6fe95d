"""Datasets of graphs, padded batches and the distribution of graph sizes."""
