"""What users declare of SlurmClusters in plans, in both shapes, and who declares their workers."""

from __future__ import annotations

from typing import Final

from fault_plans.api_names import CLUSTER
from fault_plans.specs import DATABASE
from penstock.api.kubernetes.meta import Json

OLDER, CURRENT = "older", "current"
"""Shapes: workers in the SlurmCluster itself, or in NodeSets."""
HOST_KEYS: Final = "login-ssh-host-keys"
"""The user's Secret: generated keys take a second of true time each."""
JAIL, SPOOL = "jail-pvc", "controller-spool-pvc"
"""The user's PVCs."""
PVCS: Final = (JAIL, SPOOL)
_MUNGE: Final[Json] = {"image": "munge:26.05-1"}
_RESOURCES: Final[Json] = {"cpu": "1", "memory": "1Gi"}
_OLDER_TAG: Final = "25.05-1"


def accounting(*, enabled: bool) -> Json:
    """The spec of accounting, with the database of a user."""
    found: Json = {"enabled": enabled, "k8sNodeFilterName": "all"}
    reference = {"name": DATABASE, "key": "password"}
    database = {"host": "db", "user": "slurm", "passwordSecretKeyRef": reference}
    return found | {
        "slurmdbd": {"image": "slurmdbd:26.05-1"},
        "munge": _MUNGE,
        "externalDB": {"enabled": True, **database},
    }


def slurm_cluster(
    shape: str, replicas: int, *, has_pvcs: bool = False, accounted: bool = False
) -> Json:
    """The spec of a SlurmCluster; `replicas` are its own workers in the older shape."""
    tag = _OLDER_TAG if shape == OLDER else "26.05-1"
    nodes: Json = {
        "accounting": accounting(enabled=accounted),
        "exporter": {"enabled": False, "k8sNodeFilterName": "all"},
        "rest": {"enabled": False, "k8sNodeFilterName": "all"},
        "controller": {
            "k8sNodeFilterName": "all",
            "munge": _MUNGE,
            "slurmctld": {"image": f"slurmctld:{tag}"},
            "volumes": {
                "spool": {"volumeSourceName": "controller-spool"},
                "jail": {"volumeSourceName": "jail"},
            },
        },
        "login": {
            "size": 1,
            "k8sNodeFilterName": "all",
            "munge": _MUNGE,
            "sshd": {"image": f"login:{tag}"},
            "sshRootPublicKeys": [],
            "sshdServiceType": "NodePort",
            "volumes": {"jail": {"volumeSourceName": "jail"}},
        },
    }
    if shape == OLDER:
        nodes["worker"] = {
            "size": replicas,
            "maxUnavailable": "25%",
            "k8sNodeFilterName": "all",
            "munge": _MUNGE,
            "slurmd": {"image": "slurmd:1"},
            "volumes": {
                "spool": _spool() if has_pvcs else {"volumeSourceName": "spool"},
                "jail": {"volumeSourceName": "jail"},
            },
        }
    return {
        "clusterType": "cpu",
        "k8sNodeFilters": [{"name": "all"}],
        "volumeSources": [
            {"name": "jail", "persistentVolumeClaim": {"claimName": JAIL}},
            {"name": "controller-spool", "persistentVolumeClaim": {"claimName": SPOOL}},
            {"name": "spool", "emptyDir": {}},
        ],
        "populateJail": {"image": "populate-jail:1", "k8sNodeFilterName": "all"},
        "secrets": {"sshdKeysName": HOST_KEYS},
        "plugStackConfig": {"pyxis": {"required": False}},
        "customSlurmConfig": "KillWait=30\n",
        "slurmNodes": nodes,
        "sConfigController": {"node": {"k8sNodeFilterName": "all", "size": 1}},
    }


def node_set(replicas: int, *, pvcs: tuple[str, str] | None = None) -> Json:
    """The spec of a NodeSet; `pvcs` are what becomes of its PVCs, scaled in and deleted."""
    volumes: Json = {"spool": {}, "jail": {"persistentVolumeClaim": {"claimName": JAIL}}}
    if pvcs is not None:
        scaled, deleted = pvcs
        policy = {"whenScaled": scaled, "whenDeleted": deleted}
        volumes |= {"spool": _spool(), "persistentVolumeClaimRetentionPolicy": policy}
    return {
        "clusterName": CLUSTER,
        "replicas": replicas,
        "maxUnavailable": "25%",
        "slurmd": {
            "image": image("slurmd:1"),
            "resources": _RESOURCES,
            "volumes": volumes,
        },
        "munge": {"image": image("munge:1"), "resources": _RESOURCES},
    }


def image(reference: str) -> Json:
    """An image as a NodeSet has it."""
    repository, _, tag = reference.partition(":")
    return {"repository": repository, "tag": tag}


def _spool() -> Json:
    return {
        "volumeClaimTemplateSpec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        }
    }
