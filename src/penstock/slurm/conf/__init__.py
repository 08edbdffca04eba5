"""Documents of Slurm's configuration, and how a changed key is applied."""
