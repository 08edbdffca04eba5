"""From the objects of `slurm.nebius.ai` to the model, and back."""
