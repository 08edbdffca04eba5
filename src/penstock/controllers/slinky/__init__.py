"""The reconcilers of the kinds of slinky.slurm.net."""
