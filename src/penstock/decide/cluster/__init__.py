"""Decisions about slurmctld's pods, its network and what is external."""
