"""The sidecar with munged, beside each daemon that signs its messages with munge."""

from __future__ import annotations

from typing import Final

from penstock.api.kubernetes.meta import Json
from penstock.api.nebius.common import NodeContainer
from penstock.render.nebius.container import SYS_ADMIN, capabilities, container
from penstock.render.nebius.volumes import mount, munge_socket_mount

_ANSWERS: Final = "munge -n | unmunge >/dev/null"


def munge(given: NodeContainer) -> Json:
    """A native sidecar: the next container starts once munged answers, and outlives its end."""
    command = ["/bin/sh", "-c", _ANSWERS]
    return {
        **container(
            "munge",
            given,
            mounts=[mount("munge-key", "/mnt/munge-key", read_only=True), munge_socket_mount()],
            security=capabilities(SYS_ADMIN),
            probes={
                "startupProbe": {
                    "exec": {"command": command},
                    "periodSeconds": 1,
                    "timeoutSeconds": 5,
                    "failureThreshold": 60,
                },
                "livenessProbe": {"exec": {"command": command}, "timeoutSeconds": 5},
            },
        ),
        "restartPolicy": "Always",
    }
