"""Warnings about overridden fields."""
