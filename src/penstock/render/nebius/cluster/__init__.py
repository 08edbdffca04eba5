"""The daemons of a SlurmCluster beside its workers, its Services and its keys."""
