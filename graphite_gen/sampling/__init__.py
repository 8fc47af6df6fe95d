"""New graphs from the prior, through the decoder."""

from .sampler import Sampler

__all__ = ["Sampler"]
