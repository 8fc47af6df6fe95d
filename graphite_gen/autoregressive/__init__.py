"""Autoregressive decoding: nodes are added one at a time, in a node ordering (beyond the paper)."""
