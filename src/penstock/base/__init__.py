"""What needs neither Kubernetes nor Slurm: times, durations, certificates."""
