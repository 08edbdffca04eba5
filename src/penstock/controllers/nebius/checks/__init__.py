"""ActiveChecks: their Jobs, the results of these, and the reactions of Slurm nodes."""
