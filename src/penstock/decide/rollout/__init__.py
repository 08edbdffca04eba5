"""Which worker is replaced next, and when."""
