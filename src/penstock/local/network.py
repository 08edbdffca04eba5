"""The link between the machine and a node, and the machine's route to its pods and Services.

Further nodes are ports of a bridge in the first node's network namespace, which routes each one's
pods to it, so that the machine's one route reaches them all.

Both ends of a link go when the node's network namespace goes. `ip` is that of the node's file
tree, so the machine needs none.
"""

import subprocess
from collections.abc import Sequence
from pathlib import Path

from penstock.local.addresses import Addresses
from penstock.local.errors import LocalError
from penstock.local.process import Process

_IN_ROOT = 'mount --bind /proc "$0/proc" && exec chroot "$0" /usr/sbin/ip -batch -'
"""`ip` of the tree at $0; it finds the other end's namespace by /proc, mounted for it alone."""


BRIDGE = "nodes0"
"""In the first node: what its cluster's further nodes are joined by."""


def connect(root: Path, node: Process, addresses: Addresses) -> None:
    """Join the network namespace of `node` with the machine's. Raises LocalError."""
    link = addresses.link
    _ip(
        root,
        (),
        f"link add {link} type veth peer name eth0 netns {node.pid}",
        f"address add {addresses.machine}/30 dev {link}",
        f"link set {link} up",
        f"route add {addresses.all} via {addresses.node} dev {link}",
    )
    _ip(
        root,
        _inside(node),
        "link set lo up",
        f"address add {addresses.node}/30 dev eth0",
        "link set eth0 up",
        f"route add default via {addresses.machine}",
        f"link add {BRIDGE} address {addresses.bridge_mac} type bridge",
        f"address add {addresses.bridge}/24 dev {BRIDGE}",
        f"link set {BRIDGE} up",
    )


def join(root: Path, first: Process, node: Process, addresses: Addresses, number: int) -> None:
    """Make `node` number `number` (from 1) of the cluster of `first`. Raises LocalError."""
    place = addresses.node_of(number)
    _ip(
        root,
        _inside(first),
        f"link add n{number} type veth peer name eth0 netns {node.pid}",
        f"link set n{number} master {BRIDGE} up",
        f"route replace {addresses.pods_of(number)} via {place} dev {BRIDGE}",
    )
    _ip(
        root,
        _inside(node),
        "link set lo up",
        f"address add {place}/24 dev eth0",
        "link set eth0 up",
        f"route add default via {addresses.bridge}",
    )


def leave(root: Path, first: Process, addresses: Addresses, number: int) -> None:
    """Take the route to node `number` back; its link goes with it."""
    command = f"route flush {addresses.pods_of(number)}"
    _ip(root, _inside(first), command)


def disconnect(root: Path, addresses: Addresses) -> None:
    """Remove the machine's end of the link, which outlives its node for a moment."""
    there = Path("/sys/class/net", addresses.link)
    if there.exists():
        try:
            _ip(root, (), f"link delete {addresses.link}")
        except LocalError:
            # The kernel was quicker, or something is wrong.
            if there.exists():
                raise


def _inside(node: Process) -> tuple[str, ...]:
    return ("nsenter", "--target", str(node.pid), "--net")


def _ip(root: Path, inside: Sequence[str], *commands: str) -> None:
    done = subprocess.run(
        [*inside, "unshare", "--mount", "sh", "-c", _IN_ROOT, str(root)],
        input="\n".join(commands),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise LocalError(f"The node's network cannot be made: {done.stderr.strip()}")
