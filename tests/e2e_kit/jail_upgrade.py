"""A JailUpgrade, the next image of a jail, and the files by which jails are compared."""

from __future__ import annotations

import json
from typing import Any, Final

from e2e_kit.api import Json
from e2e_kit.images import FIXTURES, build, give
from e2e_kit.slurmcluster import SlurmClusterSite
from penstock.local.node import Node

NAME: Final = "next"
IMAGE: Final = "localhost/penstock-test/jail-next:1"
_PACKAGE: Final = (FIXTURES / "jail-next/package").read_text()
CHANGE: Final = f"""
set -e
cat >/root/package <<'SCRIPT'
{_PACKAGE}SCRIPT
sh /root/package shared-tool 1.0
sh /root/package own-tool 1.0
echo '# of the users' >>/etc/nanorc
rm /usr/share/doc/zip/copyright
echo '# of the users' >>/usr/share/doc/zip/note
"""
"""What root of the jail does before the upgrade. Run in a session."""
LIST: Final = """
cd /
find etc usr var/lib home -xdev ! -type d ! -path etc/ld.so.cache ! -path etc/passwd- \
    ! -path 'var/lib/penstock/*' -printf '%p %y %U %G %m %n %s %T@ %l\\n' | sort
find etc usr var/lib/dpkg -xdev -type d -printf '%p %U %G %m\\n' | sort
find etc usr var/lib/dpkg -xdev -type f ! -path etc/ld.so.cache -print0 | sort -z \
    | xargs -0 sha256sum | sha256sum
"""
"""Owners, modes, names, times and content of files in the jail."""


def give_image(node: Node) -> str:
    """Give the node the next image; its exact name."""
    archive = build("jail-next", {IMAGE: "populate-jail"})
    give(node, archive)
    return archive.exact[IMAGE]


def upgrade(cluster: SlurmClusterSite, image: str, program: str, **more: Any) -> None:
    """Create the JailUpgrade, or change it."""
    spec: Json = {
        "clusterRef": {"name": cluster.name},
        "image": image,
        "programImage": program,
        **more,
    }
    cluster.apply(
        {
            "apiVersion": "penstock.dev/v1alpha1",
            "kind": "JailUpgrade",
            "metadata": {"name": NAME},
            "spec": spec,
        }
    )


def status(cluster: SlurmClusterSite) -> Json:
    """Its status."""
    found: Json = json.loads(cluster.kubectl("get", "jailupgrade", NAME, "-o", "json"))
    return found.get("status", {})
