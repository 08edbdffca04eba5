"""Jobs of Backups and Restores of a SlurmCluster."""
