"""Init containers of a worker with a root of its own: one fills it, a native sidecar keeps it.

The sidecar brings the users of the shared jail into the root and logs what is in it
(`images/entrypoints/jail_root.py`). slurmd starts once the users are there.
"""

from __future__ import annotations

from typing import Final

from penstock.api.kubernetes.meta import Json, LocalObjectReference
from penstock.api.nebius.slurmcluster import SlurmClusterSpec
from penstock.model.root_report import CONTAINER
from penstock.render.nebius import volumes as vol
from penstock.render.nebius.cluster import populate_jail
from penstock.render.nebius.container import app_armor
from penstock.render.nebius.worker.template import WorkerTemplate

_PROGRAM: Final = "/usr/local/libexec/penstock/jail_root.py"
_READY: Final = "/run/jail-root-ready"
_RESOURCES: Final[Json] = {
    "requests": {"cpu": "10m", "memory": "32Mi"},
    "limits": {"memory": "256Mi"},
}


def own_root(spec: SlurmClusterSpec, of: WorkerTemplate) -> list[Json]:
    """The containers; none where all workers share the jail."""
    return [] if of.shared is None else [populate_jail.of_worker(spec), _keeper(of)]


def own_root_secrets(
    spec: SlurmClusterSpec, of: WorkerTemplate
) -> list[tuple[LocalObjectReference, ...]]:
    """Secrets for the registry of the image that fills the root."""
    return [] if of.shared is None else [spec.populate_jail.image_pull_secrets]


def _keeper(of: WorkerTemplate) -> Json:
    out: Json = {
        "name": CONTAINER,
        "image": of.slurmd.image,
        "imagePullPolicy": of.slurmd.image_pull_policy,
        "command": ["/usr/bin/python3", "-B", _PROGRAM],
        "resources": _RESOURCES,
        "restartPolicy": "Always",
        "startupProbe": {
            "exec": {"command": ["test", "-e", _READY]},
            "periodSeconds": 1,
            "failureThreshold": 600,
        },
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [vol.jail_mount(), vol.shared_etc_mount()],
    }
    if context := app_armor(of.slurmd.app_armor_profile):
        out["securityContext"] = context
    return out
