"""How long a change of Slurm's configuration takes to be in effect."""
