"""Measurements of Penstock, each beside its limit: `python -m bench`."""
