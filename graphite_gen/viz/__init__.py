"""Figures of graphs (matplotlib), the same drawings as text, and the HTML report."""
