"""Figures of graphs (matplotlib), the same drawings as text, and the HTML report."""

from .figures import (
    check_picture,
    plot_adjacency,
    plot_decoding_steps,
    plot_distributions,
    plot_gallery,
    plot_training,
    save_picture,
)

__all__ = [
    "check_picture",
    "plot_adjacency",
    "plot_decoding_steps",
    "plot_distributions",
    "plot_gallery",
    "plot_training",
    "save_picture",
]
