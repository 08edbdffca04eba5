"""Copies of slurmctld's lists that polling keeps current."""
