"""sssd beside slurmctld, which asks it for the users of a directory.

slurmctld takes the user of a token by name, and jobs of a user whom it does not find for nobody's.
It runs without root's rights, which sssd needs; so the two share the folder of sssd's sockets.
"""

from __future__ import annotations

from collections.abc import Mapping

from penstock.api.kubernetes.meta import Json
from penstock.render.parts.pod_template import memory, secret_source
from penstock.render.parts.script import script
from penstock.render.slinky.inputs import ClusterInputs

_CONF = "sssd-conf"
_PIPES = "sssd-pipes"
_PATH = "/var/lib/sss/pipes"

FORMER: Mapping[str, str] = {
    "5c8b34cf50596775b56da051f8463ef1853a27c217698be4b22d140de17b32e8": (
        "27785e01fcc60177983f1c633dafdd86b3036ba176d95565cb8dd302964dca22"
    )
}
"""By the hash of the chart's default sssd.conf that of an earlier one which means the same."""


def volumes(cluster: ClusterInputs) -> list[Json]:
    """Where sssd.conf comes from and the sockets are; nothing without a reference.

    slurmctld starts without the Secret too: those who work already must not wait for it.
    """
    ref = cluster.controller.spec.sssd_conf_ref
    if ref is None:
        return []
    source = secret_source(ref.name, (ref.key, "sssd.conf", 0o600))
    source["secret"]["optional"] = True
    return [
        {"name": _CONF, "projected": {"defaultMode": 0o600, "sources": [source]}},
        memory(_PIPES),
    ]


def mounts(cluster: ClusterInputs) -> list[Json]:
    """What slurmctld's container has of it."""
    if cluster.controller.spec.sssd_conf_ref is None:
        return []
    return [{"name": _PIPES, "mountPath": _PATH, "readOnly": True}]


def sidecars(cluster: ClusterInputs) -> list[Json]:
    """The container of sssd, from the image of login pods."""
    if cluster.controller.spec.sssd_conf_ref is None:
        return []
    return [
        {
            "name": "sssd",
            "image": cluster.images.login,
            "command": ["sh", "-c", script("sssd")],
            "restartPolicy": "Always",
            "securityContext": {
                "runAsNonRoot": False,
                "runAsUser": 0,
                "runAsGroup": 0,
                "allowPrivilegeEscalation": False,
                "capabilities": {
                    "drop": ["ALL"],
                    "add": ["CHOWN", "DAC_OVERRIDE", "FOWNER", "SETGID", "SETUID"],
                },
            },
            "terminationMessagePolicy": "FallbackToLogsOnError",
            "volumeMounts": [
                {"name": _CONF, "mountPath": "/mnt/sssd", "readOnly": True},
                {"name": _PIPES, "mountPath": _PATH},
            ],
        }
    ]
