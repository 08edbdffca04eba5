"""slurm.conf and what goes with it, of a Controller."""
