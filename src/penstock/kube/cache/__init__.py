"""Caches of objects that a watch keeps current."""
