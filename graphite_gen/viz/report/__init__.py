"""A model and the quality of its samples on one HTML page: data in ``collect``, markup in ``page.html``."""

from .collect import ReportData, collect_report, sample_rows
from .page import drawn_graphs, render_page

__all__ = ["ReportData", "collect_report", "drawn_graphs", "render_page", "sample_rows"]
