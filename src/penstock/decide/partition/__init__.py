"""Decisions about partitions: retention, drift and conditions."""
