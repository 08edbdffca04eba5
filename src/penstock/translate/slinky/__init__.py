"""From the objects of `slinky.slurm.net` to the model, and back."""
