"""Partitions: declared, in slurm.conf, in slurmctld."""
