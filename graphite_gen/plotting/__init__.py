"""Pictures of graphs and of how they compare, as matplotlib figures."""

from .adjacency import plot_adjacency
from .curves import plot_stages, plot_training
from .distributions import plot_distributions
from .figure import check_picture, save_picture
from .gallery import plot_gallery

__all__ = [
    "check_picture",
    "plot_adjacency",
    "plot_distributions",
    "plot_gallery",
    "plot_stages",
    "plot_training",
    "save_picture",
]
