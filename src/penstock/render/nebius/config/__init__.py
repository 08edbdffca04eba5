"""Configuration files of a SlurmCluster, and the ConfigMaps with them."""
