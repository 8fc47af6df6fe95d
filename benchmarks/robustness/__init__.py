"""Scripts that test faults, malformed input, long runs and distributed runs."""
