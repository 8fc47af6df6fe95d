"""Scripts that measure time and memory."""
