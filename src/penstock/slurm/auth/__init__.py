"""Tokens and keys that Slurm's daemons check."""
