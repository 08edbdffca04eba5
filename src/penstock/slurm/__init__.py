"""Slurm without Kubernetes: configuration documents, host lists, tokens, slurmrestd, the mirror."""
