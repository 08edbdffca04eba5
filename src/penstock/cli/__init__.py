"""The command `penstock`."""
