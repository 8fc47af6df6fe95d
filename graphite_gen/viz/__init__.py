"""Pictures of graphs and of how they compare, as matplotlib figures."""

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
