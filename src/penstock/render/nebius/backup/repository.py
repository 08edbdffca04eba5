"""A repository of restic, as variables, volumes and mounts of a container.

Source: restic manual, "Environment variables".
"""

from __future__ import annotations

from typing import Final

from penstock.api.kubernetes.meta import Json
from penstock.api.penstock.backup_parts import ACCESS_KEY_ID, SECRET_ACCESS_KEY, Repository
from penstock.render.nebius import volumes as vol
from penstock.render.nebius.container import variable

WORK: Final = "work"
_NAME: Final = "repository"
_PATH: Final = "/repository"
_PASSWORD: Final = "repository-password"  # noqa: S105 (the name of a volume)
_PASSWORD_PATH: Final = "/etc/penstock/repository"  # noqa: S105
_OWNER_READS: Final = 0o400
_TMP: Final = "/tmp"  # noqa: S108 (the pod's own)


def variables(given: Repository) -> list[Json]:
    """Where the repository is, and what opens it."""
    key = given.password_secret_ref.key
    out = [
        variable("RESTIC_REPOSITORY", _location(given)),
        variable("RESTIC_PASSWORD_FILE", f"{_PASSWORD_PATH}/{key}"),
        variable("RESTIC_CACHE_DIR", f"{_TMP}/cache"),
    ]
    if given.s3 is not None:
        secret = given.s3.credentials_secret_name
        out += [_secret_variable(name, secret) for name in (ACCESS_KEY_ID, SECRET_ACCESS_KEY)]
        if given.s3.region:
            out.append(variable("AWS_DEFAULT_REGION", given.s3.region))
    return out


def volumes(given: Repository) -> list[Json]:
    """The password, a folder for temporary files, and the PVC if the repository is in one."""
    secret = given.password_secret_ref
    out: list[Json] = [
        vol.secret(_PASSWORD, secret.name, [(secret.key, _OWNER_READS)]),
        {"name": WORK, "emptyDir": {}},
    ]
    if given.pvc is not None:
        claim = {"claimName": given.pvc.claim_name}
        out.append({"name": _NAME, "persistentVolumeClaim": claim})
    return out


def mounts(given: Repository) -> list[Json]:
    """Where the container has them."""
    out = [vol.mount(_PASSWORD, _PASSWORD_PATH, read_only=True), vol.mount(WORK, _TMP)]
    if given.pvc is not None:
        out.append(vol.mount(_NAME, _PATH))
    return out


def _location(given: Repository) -> str:
    if given.s3 is not None:
        folder = f"/{given.s3.path}" if given.s3.path else ""
        return f"s3:{given.s3.endpoint.rstrip('/')}/{given.s3.bucket}{folder}"
    path = given.pvc.path if given.pvc is not None else ""
    return f"{_PATH}/{path}" if path else _PATH


def _secret_variable(name: str, secret: str) -> Json:
    return {"name": name, "valueFrom": {"secretKeyRef": {"name": secret, "key": name}}}
