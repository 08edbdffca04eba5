"""Another Kubernetes node of a site, for a while."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from e2e_kit.site import Site
from penstock.local import inotify
from support.room import room


@contextmanager
def further_node(site: Site, name: str) -> Generator[str]:
    """The name of a Kubernetes node with a kubelet of its own, which is gone after the block."""
    with room(inotify.FURTHER_NODE):
        site.node.add(name)
        try:
            yield name
        finally:
            site.node.delete(name)
