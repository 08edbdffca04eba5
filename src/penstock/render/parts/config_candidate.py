"""The volume of slurmctld's pod with the configuration to try next."""

from __future__ import annotations

from penstock.api.cluster import marks
from penstock.api.kubernetes.meta import Json
from penstock.render.parts.pod_template import config_map_source, projected

_NAME = "slurm-candidate"


def candidate_volume(config_map: str, mode: int, *beside: Json) -> Json:
    """The files of that ConfigMap, those `beside` them, and the requests in the pod's annotations.

    The ConfigMap may be absent.
    """
    files = config_map_source(config_map)
    files["configMap"]["optional"] = True
    requests = [
        {"path": path, "fieldRef": {"fieldPath": f"metadata.annotations['{key}']"}}
        for path, key in (
            (".live", marks.CONFIG_LIVE),
            (".restart", marks.CONFIG_RESTART),
            (".reconfigure", marks.RECONFIGURE),
        )
    ]
    return projected(_NAME, mode, [files, *beside, {"downwardAPI": {"items": requests}}])


def candidate_mount() -> Json:
    """Its mount in the reconfigure container."""
    return {"name": _NAME, "mountPath": "/mnt/candidate", "readOnly": True}
