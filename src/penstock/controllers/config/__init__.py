"""The transaction that brings a configuration to slurmctld."""
