"""Kinds of `slurm.nebius.ai`: SlurmCluster, its NodeSets and the kinds around them."""
