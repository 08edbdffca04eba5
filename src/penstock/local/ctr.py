"""Images of a node's containerd, in the namespace that Kubernetes uses."""

from pathlib import Path

from penstock.local.launch import inside
from penstock.local.process import Process

CTR = ("/usr/bin/ctr", "--namespace", "k8s.io", "images")


def load(first: Process, archive: Path) -> None:
    """Import a docker or OCI archive under the names in it."""
    with archive.open("rb") as stream:
        inside(first, (*CTR, "import", "-"), stream)


def present(first: Process) -> dict[str, str]:
    """Digest of each image by name."""
    return parse(inside(first, (*CTR, "list")))


def parse(text: str) -> dict[str, str]:
    """Names and digests of the table that `ctr images list` prints."""
    rows = [line.split() for line in text.splitlines()[1:]]
    return {row[0]: row[2] for row in rows if len(row) > 2 and row[2].startswith("sha256:")}
