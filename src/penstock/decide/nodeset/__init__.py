"""The plan for the workers of a NodeSet."""
