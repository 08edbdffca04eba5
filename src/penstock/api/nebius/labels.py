"""Labels and annotations of `slurm.nebius.ai` that the rules of its kinds read."""

from __future__ import annotations

from typing import Final

PARENT_CLUSTER: Final = "slurm.nebius.ai/parental-cluster-ref"
"""Annotation of a NodeSet up to version 4.1 with its SlurmCluster; `spec.clusterName` since."""
PROTECTED: Final = "slurm.nebius.ai/webhook"
"""Label of a Secret that only the operator writes while its cluster exists."""
PROTECTED_FOR: Final = "slurm.nebius.ai/cluster"
"""Annotation of such a Secret with its SlurmCluster."""
