"""The quickstart on a built-in node with the operator, up and idle, for what is measured on it."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager

import yaml

from bench.config.rest import Cluster
from penstock.api.kubernetes.meta import Json
from penstock.local import install
from penstock.local.progress import step
from penstock.local.target import BuiltIn, Images

NAMESPACE = "slurm"
QUICKSTART = "examples/quickstart.yaml"
POD = ("slurm-controller-0", "-n", NAMESPACE, "-c", "slurmctld")
"""kubectl's arguments for slurmctld's container."""


def documents() -> list[Json]:
    """What users apply."""
    return install.documents(QUICKSTART)


def prepared(name: str) -> tuple[BuiltIn, Images]:
    """The node of that name with the images and the operator."""
    target = BuiltIn(name)
    target.up()
    images = target.load()
    with step("installing the kinds and the operator"):
        install.install(target, images)
    return target, images


@contextmanager
def running(target: BuiltIn, objects: Sequence[Json]) -> Generator[Cluster]:
    """A cluster of these objects with two idle workers, until the block ends."""
    node = target.node
    node.kubectl("create", "namespace", NAMESPACE)
    try:
        with step("starting the quickstart"):
            node.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(objects))
            cluster = Cluster(node, NAMESPACE, POD)
            cluster.until_idle(2)
        yield cluster
    finally:
        kinds = "nodesets,loginsets,restapis,controllers"
        node.kubectl("delete", kinds, "--all", "-n", NAMESPACE, "--timeout=120s")
        node.kubectl("delete", "namespace", NAMESPACE, "--wait", "--timeout=120s")
