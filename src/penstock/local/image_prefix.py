"""The registry and path that all images of a cluster have in common."""

import ipaddress
import re
from dataclasses import dataclass

from penstock.local.errors import LocalError

EXAMPLE = "registry.example.com/team/penstock"
_HOST = re.compile(r"(?:[a-z0-9-]+(?:\.[a-z0-9-]+)*|\[[0-9a-f:]+\])(?::[0-9]+)?")
_PART = re.compile(r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*")
"""Parts of a repository's name. Source: OCI Distribution Specification, "Pulling manifests"."""


@dataclass(frozen=True)
class ImagePrefix:
    """A registry, with its port if any, and a path in it, which may be empty."""

    host: str
    path: str = ""

    def __str__(self) -> str:
        return f"{self.host}/{self.path}" if self.path else self.host

    @property
    def loopback(self) -> bool:
        """Whether the registry is on this very machine."""
        name = self.host.rpartition(":")[0] if self.host[-1:].isdigit() else self.host
        name = (name if ":" in self.host else self.host).strip("[]")
        try:
            return ipaddress.ip_address(name).is_loopback
        except ValueError:
            return name == "localhost" or name.endswith(".localhost")


def parse(text: str) -> ImagePrefix:
    """A prefix as a user writes it; a slash at its end is no harm.

    Raises LocalError with a prefix that would do.
    """
    given = text.strip().rstrip("/")
    scheme, found, rest = given.partition("://")
    if found:
        raise LocalError(f"Names of images have no {scheme}://: write {rest}, not {text}.")
    host, _, path = given.partition("/")
    if "@" in given:
        raise LocalError(f"{text!r} has a digest or a user: write registry and path, as {EXAMPLE}.")
    if ":" in path:
        name = given.rpartition(":")[0]
        raise LocalError(f"{text!r} has a tag, which each image gets itself: write {name}.")
    if given != given.lower():
        raise LocalError(f"Names of images have no capitals: write {given.lower()}, not {text}.")
    if host and not ("." in host or ":" in host or host == "localhost"):
        raise LocalError(
            f"{text!r} names no registry, so that Docker Hub would be taken: write "
            f"docker.io/{given} if that is meant, else as {EXAMPLE}."
        )
    parts = path.split("/") if path else []
    if not _HOST.fullmatch(host) or not all(_PART.fullmatch(part) for part in parts):
        raise LocalError(f"{text!r} is not a registry with a path: write it as {EXAMPLE}.")
    return ImagePrefix(host, path)
