"""The process `soperator-exporter`: metrics of one Slurm cluster."""
