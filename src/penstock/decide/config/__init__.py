"""Decisions about the configuration on its way to slurmctld."""
