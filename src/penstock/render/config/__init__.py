"""Configuration files of Slurm: their bytes and their hash."""
