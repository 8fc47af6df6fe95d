"""One page that shows what a model is and how good its samples are."""

from .contents import Contents, gather
from .page import render_page

__all__ = ["Contents", "gather", "render_page"]
