"""Legal values that no schema can know, and what must be declared beside a field to give it sense.

The objects of a stage: Controller `slurm`, RestApi `slurm`, NodeSet `compute`, LoginSet `login`,
Accounting `records`, Token `token`, Partition `part`, and Secrets and ConfigMaps that references
may name.
"""

from __future__ import annotations

import base64
from typing import Any, Final

from declarations.properties import Property, laid_over
from penstock.api.kubernetes.meta import Json

NAMES: Final = {
    "Controller": "slurm",
    "RestApi": "slurm",
    "NodeSet": "compute",
    "LoginSet": "login",
    "Accounting": "records",
    "Token": "token",
    "Partition": "part",
}
NAMESPACE: Final = "$NAMESPACE"
"""Stands for the namespace of the stage in a value."""
REF: Final[Json] = {"controllerRef": {"name": "slurm"}}
_SLURM_KEY: Final[Json] = {"name": "keys", "key": "slurm.key"}
_JWT_KEY: Final[Json] = {"name": "keys", "key": "jwt.key"}
BASE: Final[dict[str, Json]] = {
    "Controller": {"clusterName": "stage", "persistence": {"enabled": False}},
    "RestApi": REF,
    "NodeSet": {**REF, "replicas": 2, "updateStrategy": {"type": "OnDelete"}},
    "LoginSet": REF,
    "Accounting": {
        "slurmKeyRef": _SLURM_KEY,
        "jwtKeyRef": _JWT_KEY,
        "storageConfig": {"host": "db", "passwordKeyRef": {"name": "keys", "key": "password"}},
    },
    "Token": {"username": "alice", "jwtKeyRef": _JWT_KEY},
    "Partition": {**REF, "nodeSets": ["compute"]},
}
"""The specs that a stage begins with."""

_KEYS = ("slurm.key", "jwt.key", "password", "sssd.conf")
SECRET: Final[Json] = {key: base64.b64encode(b"k" * 64).decode() for key in _KEYS}
"""Data of the Secrets `keys` and `sssd`."""
CONFIG_MAPS: Final[dict[str, dict[str, str]]] = {
    "files": {"gres.conf": "AutoDetect=off\n"},
    "scripts": {"10-sample.sh": "#!/bin/sh\n"},
    "jwks": {"jwks.json": '{"keys":[]}'},
}
"""Data of the ConfigMaps that references may name."""

_LEGAL: Final[dict[str, list[Any]]] = {
    "Accounting.spec.extraConf": ["DebugLevel=debug"],
    "Controller.spec.clusterName": ["big"],
    "Controller.spec.extraConf": ["MinJobAge=3\n", "# nothing", "MinJobAge=3\nMinJobAge=4"],
    "Controller.spec.service.nodePort": [30817],
    "Controller.spec.persistence.existingClaim": ["state"],
    "LoginSet.spec.service.nodePort": [30822],
    "RestApi.spec.service.nodePort": [30820],
    "NodeSet.spec.extraConf": ["Weight=7", " Weight=7  Features=a,b "],
    "Partition.spec.overSubscribe": ["FORCE:4", "EXCLUSIVE", "NO"],
    "Partition.spec.preemptMode": ["SUSPEND,GANG", "OFF"],
    "Partition.spec.nodeSets": [["compute"]],
    "Partition.spec.nodeSets[]": ["compute"],
    "Partition.spec.maxTime": [60, "1-00:00:00", "UNLIMITED"],
    "Token.spec.lifetime": ["1h", "0", "90m30s"],
    "Token.spec.identity.home": ["/srv/alice"],
    "Token.spec.identity.shell": ["/bin/sh"],
    "Token.spec.username": ["alice"],
    "NodeSet.spec.updateStrategy.scheduledUpdate.duration": ["1h", "1m"],
    "accountingRef.name": ["records"],
    "accessModes[]": ["ReadWriteMany", "ReadWriteOnce"],
    "configFileRefs[].name": ["files"],
    "controllerRef.name": ["slurm"],
    "controllerRef.namespace": [NAMESPACE],
    "externalConfig.host": ["slurm.example.com"],
    "extraSshdConfig": ["MaxAuthTries 3", "Match User root\n  X11Forwarding no\n"],
    "jwksKeyRef.key": ["jwks.json"],
    "jwksKeyRef.name": ["jwks"],
    "jwtHs256KeyRef.key": ["jwt.key"],
    "jwtHs256KeyRef.name": ["keys"],
    "jwtKeyRef.key": ["jwt.key"],
    "jwtKeyRef.name": ["keys"],
    "matchExpressions[].operator": ["In"],
    "partition.config": ["MaxTime=60", "Default=YES  MaxTime=UNLIMITED "],
    "passwordKeyRef.key": ["password"],
    "passwordKeyRef.name": ["keys"],
    "rollingUpdate.maxSurge": [1, "50%", 0],
    "rollingUpdate.maxUnavailable": [1, "50%", "100%", 99],
    "rootSshAuthorizedKeys": ["ssh-ed25519 AAAA alice\n", "# nobody"],
    "scheduledUpdate.flags": [["WEEKLY", "OVERLAP"], ["daily", "FORCE_START"], []],
    "scheduledUpdate.flags[]": ["DAILY", "magnetic"],
    "scheduledUpdate.startTime": ["2027-01-31T04:00:00Z", "2027-01-31T04:00:00+02:00"],
    "slurmKeyRef.key": ["slurm.key"],
    "slurmKeyRef.name": ["keys"],
    "sssdConfRef.key": ["sssd.conf"],
    "sssdConfRef.name": ["sssd"],
    "template.spec.hostname": ["node-", "node"],
    "ScriptRefs[].name": ["scripts"],
    "interval": ["30s", "1m30s", "0"],
    "scrapeTimeout": ["10s"],
    "volumeMode": ["Filesystem"],
    "limits.*": ["1Gi", 1],
    "requests.*": ["1Gi", 1],
}
_CONTEXT: Final[dict[str, Json]] = {
    "Controller.spec.ha": {"persistence": {"enabled": True, "existingClaim": "state"}},
    "Controller.spec.ha.": {"ha": {"enabled": True}},
    "Controller.spec.external": {"externalConfig": {"host": "slurm.example.com", "port": 6817}},
    "Controller.spec.externalConfig": {"external": True},
    "Controller.spec.metrics.serviceMonitor": {"metrics": {"enabled": True}},
    "Controller.spec.metrics.serviceMonitor.": {"metrics": {"serviceMonitor": {"enabled": True}}},
    "Controller.spec.persistence": {"persistence": {"enabled": True}},
    "Controller.spec.service.nodePort": {"service": {"spec": {"type": "NodePort"}}},
    "RestApi.spec.service.nodePort": {"service": {"spec": {"type": "NodePort"}}},
    "LoginSet.spec.service.nodePort": {"service": {"spec": {"type": "NodePort"}}},
    "NodeSet.spec.ssh.": {"ssh": {"enabled": True}},
    "NodeSet.spec.partition.": {"partition": {"enabled": True}},
    "NodeSet.spec.persistentVolumeClaimRetentionPolicy": {
        "volumeClaimTemplates": [{"metadata": {"name": "sample"}, "spec": {}}]
    },
    "NodeSet.spec.updateStrategy.rollingUpdate": {"updateStrategy": {"type": "RollingUpdate"}},
    "NodeSet.spec.updateStrategy.scheduledUpdate": {
        "updateStrategy": {
            "type": "ScheduledUpdate",
            "scheduledUpdate": {"startTime": "2027-01-31T04:00:00Z"},
        }
    },
    "LoginSet.spec.strategy.rollingUpdate": {"strategy": {"type": "RollingUpdate"}},
    # An external slurmdbd requires neither key.
    "Accounting.spec.mungeKeyRef": {
        "slurmKeyRef": None,
        "external": True,
        "externalConfig": {"host": "db.example.com", "port": 6819},
    },
    "Accounting.spec.external": {"externalConfig": {"host": "db.example.com", "port": 6819}},
    "Accounting.spec.externalConfig": {"external": True},
}


def legal(prop: Property) -> list[Any] | None:
    """Known legal values of a property; None if its schema is enough."""
    path = f"{prop.kind}.{prop.name}"
    if path in _LEGAL:
        return _LEGAL[path]
    return next((values for end, values in _LEGAL.items() if path.endswith(end)), None)


def base(prop: Property) -> Json:
    """The spec of the property's kind, with what must be declared beside the property."""
    path = f"{prop.kind}.{prop.name}"
    spec = BASE[prop.kind]
    for start, beside in _CONTEXT.items():
        inside = path == start or path.startswith(f"{start.rstrip('.')}.")
        if inside and not (start.endswith(".") and path == start.rstrip(".")):
            spec = laid_over(spec, beside)
    return spec
