"""Slurm's daemons in memory."""
