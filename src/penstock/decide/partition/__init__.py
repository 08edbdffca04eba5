"""Decisions about partitions: held, compared, reported."""
