"""Kubernetes objects of a SlurmCluster and its NodeSets."""
