"""The reconcilers of kinds of `slurm.nebius.ai`, one file each."""
