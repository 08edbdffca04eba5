"""Manifests of the kinds of slinky.slurm.net."""
