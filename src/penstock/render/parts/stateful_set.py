"""Fields of a StatefulSet that the API server lets nobody change."""

from __future__ import annotations

from typing import Final

FIXED: Final = ("serviceName", "podManagementPolicy", "volumeClaimTemplates")
"""Source: Kubernetes API reference, StatefulSetSpec."""
