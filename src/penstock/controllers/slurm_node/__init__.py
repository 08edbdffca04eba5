"""The actions on node records in slurmctld."""
