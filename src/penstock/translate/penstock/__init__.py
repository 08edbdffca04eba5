"""From the objects of `penstock.dev` to the model, and from Slurm back to their specs."""
