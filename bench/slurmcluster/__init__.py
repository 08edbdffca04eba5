"""A SlurmCluster beside the quickstart: each in turn on one node, with the same measure."""
