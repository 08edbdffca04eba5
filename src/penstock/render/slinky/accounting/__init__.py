"""Manifests of an Accounting."""
