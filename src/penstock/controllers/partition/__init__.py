"""Partitions as slurmctld has them: changed, compared, removed."""
