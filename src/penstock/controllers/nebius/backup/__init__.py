"""Reconcilers of Backups and Restores of SlurmClusters."""
