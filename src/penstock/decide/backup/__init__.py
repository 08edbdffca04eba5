"""Policies of Backups and Restores of a SlurmCluster."""
