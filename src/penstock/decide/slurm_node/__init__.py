"""Decisions about node records in slurmctld."""
