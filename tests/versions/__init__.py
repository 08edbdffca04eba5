"""Runs end-to-end tests on pairs of Kubernetes and Slurm, and keeps their results."""
