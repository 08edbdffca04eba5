"""The login for a registry: as docker, podman and their helpers keep it, or given for one call."""

import base64
import json
import os
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from penstock.local.errors import LocalError


@dataclass(frozen=True)
class Login:
    """How to log in. Without a user, what the machine's files and helpers have for the registry."""

    username: str = ""
    password: str = ""
    authfile: Path | None = None


@contextmanager
def auth_file(
    login: Login, host: str, environment: Mapping[str, str] = os.environ
) -> Generator[Path | None]:
    """The file with logins for skopeo; None leaves it to skopeo's own places.

    Those are `$XDG_RUNTIME_DIR/containers/auth.json` (podman, buildah, skopeo) and
    `~/.docker/config.json` (docker). A password is never in a command line, which every user of
    the machine can read. Raises LocalError when a file is named and absent.
    """
    if login.username:
        with tempfile.TemporaryDirectory(prefix="penstock-login-") as folder:
            file = Path(folder) / "auth.json"
            file.touch(mode=0o600)
            pair = base64.b64encode(f"{login.username}:{login.password}".encode()).decode()
            file.write_text(json.dumps({"auths": {host: {"auth": pair}}}))
            yield file
        return
    named = login.authfile or _named(environment)
    if named is not None and not named.is_file():
        raise LocalError(f"There is no file {named} with logins: log in to {host} first.")
    yield named


def _named(environment: Mapping[str, str]) -> Path | None:
    """The file that the environment names, as podman and docker read it."""
    if file := environment.get("REGISTRY_AUTH_FILE"):
        return Path(file)
    if folder := environment.get("DOCKER_CONFIG"):
        file = Path(folder) / "config.json"
        return file if file.is_file() else None
    return None
