"""Slurm on Kubernetes: one engine for the users of slurm-operator and of soperator."""

__version__ = "0.1.0"
