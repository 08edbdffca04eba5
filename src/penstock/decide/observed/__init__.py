"""What is observed of pods, Slurm nodes and jobs, before any decision."""
