"""Manifests of a NodeSet's workers."""
