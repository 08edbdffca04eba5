"""What users declare of an Accounting and of a Token in plans."""

from __future__ import annotations

from penstock.api.kubernetes.meta import Json

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
