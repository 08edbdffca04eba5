"""Workers of a SlurmCluster: those of its NodeSets, and its own of versions up to 2.0."""
