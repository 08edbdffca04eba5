"""Checks of a cluster as Kubernetes Jobs and Slurm jobs: when they start, and what follows."""
