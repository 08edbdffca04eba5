"""Names of the signals between controllers. Each carries the key of a Controller."""

from __future__ import annotations

SLURM = "slurm"
"""Nodes, jobs or reservations of the cluster changed, or its connection did."""
PARTITIONS_POLLED = "partitions polled"
"""slurmctld was queried for its partitions."""
PARTITIONS_APPLIED = "partitions applied"
"""Changed partitions were sent to slurmctld."""
PARTITIONS_PENDING = "partitions pending"
"""Partitions are to be sent to slurmctld later."""
PARTITION_DRIFT = "partition drift"
"""The set of partitions with drift changed."""
REGISTRATION = "registration"
"""slurmdbd reports another registration of the cluster."""
