"""Names of the files in /etc/slurm that contain keys."""

from __future__ import annotations

from typing import Final

SLURM_KEY: Final = "slurm.key"
"""The key of auth/slurm."""
JWT_KEY: Final = "jwt.key"
"""The HS256 key of auth/jwt."""
SLURM_JWKS: Final = "slurm.jwks"
"""Several keys of auth/slurm: where it exists, slurm.key is not read. Source: slurm.conf(5)."""
