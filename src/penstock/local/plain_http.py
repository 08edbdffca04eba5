"""Registries inside a built-in cluster that its nodes pull from by plain HTTP.

containerd takes TLS for granted except on loopback addresses. It reads these files at each pull.
Source: containerd's documentation, "Registry Configuration - Introduction".
"""

import ipaddress
import shutil

from penstock.local.addresses import Addresses
from penstock.local.errors import LocalError
from penstock.local.launch import inside
from penstock.local.layout import Layout
from penstock.local.process import Process

CERTS_D = "/etc/containerd/certs.d"


def allow(first: Process, registry: str, addresses: Addresses) -> None:
    """Have one node pull from `registry`, ADDRESS:PORT of the cluster, by plain HTTP.

    Raises LocalError for addresses outside the cluster, where others could read along.
    """
    address, found, port = registry.rpartition(":")
    try:
        own = ipaddress.ip_address(address) in ipaddress.ip_network(addresses.all)
    except ValueError:
        own = False
    if not found or not port.isdecimal() or not own:
        raise LocalError(
            f"{registry!r} is not ADDRESS:PORT of this cluster ({addresses.all}): a registry "
            "elsewhere needs HTTPS."
        )
    folder = f"{CERTS_D}/{registry}"
    text = f'server = "http://{registry}"'
    script = f"mkdir -p {folder} && echo '{text}' > {folder}/hosts.toml"
    inside(first, ("/bin/sh", "-c", script))


def copy(layout: Layout) -> None:
    """Give a further node what the first one has."""
    source = Layout(layout.name).upper / CERTS_D.lstrip("/")
    if source.is_dir():
        target = layout.upper / CERTS_D.lstrip("/")
        shutil.copytree(source, target, dirs_exist_ok=True)
