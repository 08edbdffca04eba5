"""Revisions of a NodeSet: recorded, rolled back, held for maintenance."""
