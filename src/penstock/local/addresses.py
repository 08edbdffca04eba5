"""Where a node lives in the machine's network: one 10.x.0.0/16 for each node.

Nodes of different names get different blocks, and no block that the machine already routes.
Inside a block the pods have the lower half (1022 addresses for each Kubernetes node), Services the
third quarter. 10.x.254.0/24 joins the nodes of a cluster that has several, and 10.x.255.0/30 the
first of them and the machine.
"""

import ipaddress
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from hashlib import sha256

from penstock.local.errors import LocalError

FIRST, COUNT = 128, 96
"""Blocks 10.128.0.0/16 to 10.223.0.0/16 are candidates."""
MOST_NODES = 32
"""Kubernetes nodes of one cluster: the pod range has room for so many ranges of 1022 addresses."""


@dataclass(frozen=True)
class Addresses:
    """The addresses of the node with block 10.`block`.0.0/16."""

    block: int

    @property
    def all(self) -> str:
        """Everything of this node, as the machine routes it."""
        return f"10.{self.block}.0.0/16"

    @property
    def pods(self) -> str:
        """The pod range (`--cluster-cidr`)."""
        return f"10.{self.block}.0.0/17"

    def pods_of(self, number: int) -> str:
        """The pods of one Kubernetes node: 0 is the first, others count from 1."""
        return f"10.{self.block}.{4 * number}.0/22"

    def node_of(self, number: int) -> str:
        """The address of Kubernetes node `number`."""
        return f"10.{self.block}.254.{number + 1}" if number else self.node

    @property
    def bridge(self) -> str:
        """The first node's address on the bridge of the cluster's nodes."""
        return f"10.{self.block}.254.1"

    @property
    def bridge_mac(self) -> str:
        """The bridge's hardware address.

        Without one it takes the lowest of its ports', and then every node loses the API server
        for as long as ARP remembers the one that has gone with its port.
        """
        return f"02:00:0a:{self.block:02x}:fe:01"

    @property
    def services(self) -> str:
        """The range of cluster IPs (`--service-cluster-ip-range`)."""
        return f"10.{self.block}.128.0/18"

    @property
    def kubernetes(self) -> str:
        """Cluster IP of the Service `kubernetes`: the first of its range."""
        return f"10.{self.block}.128.1"

    @property
    def dns(self) -> str:
        """Cluster IP of the Service `kube-dns`."""
        return f"10.{self.block}.128.10"

    @property
    def machine(self) -> str:
        """The machine's end of the link."""
        return f"10.{self.block}.255.1"

    @property
    def node(self) -> str:
        """The node's end of the link: API server, kubelet and NodePorts are here."""
        return f"10.{self.block}.255.2"

    @property
    def link(self) -> str:
        """Name of the machine's end of the link (at most 15 bytes)."""
        return f"penstock{self.block}"

    @property
    def server(self) -> str:
        """Address of the API server."""
        return f"https://{self.node}:6443"


def choose(name: str, taken: Collection[int], routed: Iterable[str]) -> Addresses:
    """A free block for the node `name`: the same for the same name where it is free.

    `taken` are blocks of other nodes, `routed` the machine's routes as CIDR. Raises LocalError
    when none is left.
    """
    others = [ipaddress.ip_network(route) for route in routed]
    start = int.from_bytes(sha256(name.encode()).digest()[:4], "big") % COUNT
    for step in range(COUNT):
        found = Addresses(FIRST + (start + step) % COUNT)
        mine = ipaddress.ip_network(found.all)
        if found.block not in taken and not any(mine.overlaps(other) for other in others):
            return found
    raise LocalError(
        f"No free address block 10.{FIRST}.0.0/16 to 10.{FIRST + COUNT - 1}.0.0/16 is left; "
        "take other nodes down (penstock local down)."
    )


def routes(text: str) -> list[str]:
    """The networks of /proc/net/route, without default routes."""
    found: list[str] = []
    for line in text.splitlines()[1:]:
        words = line.split()
        # Both are hexadecimal in the machine's byte order, which is little-endian here.
        address, mask = (bytes.fromhex(words[i])[::-1] for i in (1, 7))
        network = ipaddress.ip_network(
            (int.from_bytes(address, "big"), int.from_bytes(mask, "big").bit_count())
        )
        if network.prefixlen:
            found.append(str(network))
    return found
