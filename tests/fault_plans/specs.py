"""What users declare in plans."""

from __future__ import annotations

import base64

from penstock.api.kubernetes.meta import Json
from penstock.simulation.kubelet.kubelet import LABELS

RECORDS = "records"
"""Name of the Accounting."""
USER = "ops"
"""Name of the Token, and its user."""
DATABASE = "database"
"""Name of the Secret with the password of the database."""
SLURM_SECRET, JWT_SECRET = "slurm-auth-slurm", "slurm-auth-jwt"
"""The Secrets with keys, which the Controller makes."""
SLURM_REF: Json = {"name": SLURM_SECRET, "key": "slurm.key"}
JWT_REF: Json = {"name": JWT_SECRET, "key": "jwt.key"}
ACCOUNTING: Json = {
    "slurmKeyRef": SLURM_REF,
    "jwtKeyRef": JWT_REF,
    "storageConfig": {"host": "db", "passwordKeyRef": {"name": DATABASE, "key": "password"}},
}
TOKEN: Json = {"jwtKeyRef": JWT_REF, "username": USER, "lifetime": "15m"}
DAEMON: Json = {
    "pruneSlurmNodeRecords": "NodeNotFound",
    "template": {"spec": {"nodeSelector": LABELS}},
}
"""What matters in DaemonSet mode; a NodeSet may be switched to it."""
PERSISTENT: Json = {"persistence": {"enabled": True}}
EXTERNAL: Json = {
    "external": True,
    "externalConfig": {"host": "slurm.example.com", "port": 6817},
    "slurmKeyRef": SLURM_REF,
    "jwtKeyRef": JWT_REF,
}
CLAIM: Json = {
    "accessModes": ["ReadWriteOnce"],
    "resources": {"requests": {"storage": "1Gi"}},
}
HOST_KEYS = {"ssh_host_ed25519_key": base64.b64encode(b"key").decode()}
