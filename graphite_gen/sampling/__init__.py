"""New graphs from the prior, through the decoder."""

from .constraints import Acyclic, Connected, Constraint, Dag, Degrees, Edges, MaxDegree, Planar, Regular, Tree
from .sampler import Sampler

__all__ = [
    "Acyclic",
    "Connected",
    "Constraint",
    "Dag",
    "Degrees",
    "Edges",
    "MaxDegree",
    "Planar",
    "Regular",
    "Sampler",
    "Tree",
]
