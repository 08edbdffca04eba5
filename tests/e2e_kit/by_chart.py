"""The operator by its chart, in the place of the one that a node's tests share."""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

import yaml

from e2e_kit import manifests
from e2e_kit.api import Json
from e2e_kit.site import OPERATOR, Site
from penstock.local import install
from penstock.local.errors import LocalError
from support.release import Release

CHART = "slurm-operator"


@contextmanager
def operator(site: Site, namespace: str, values: Mapping[str, Any]) -> Generator[Release]:
    """`helm install` of the operator with the node's images and these values.

    The other operator has no pod meanwhile, and one that is ready afterwards.
    """
    release = Release(site.node, CHART, namespace)
    scale = ("-n", install.SYSTEM, "scale", f"deployment/{OPERATOR}")
    repository, _, tag = site.images.operator.rpartition(":")
    image = {"repository": repository, "tag": tag}
    site.kubectl(*scale, "--replicas=0")
    try:
        started = time.monotonic()
        own = {"operator": {"image": image, "slurmImage": site.images.slurm}}
        release.install({**own, **values}, CHART)
        rollout = ("rollout", "status", f"deployment/{CHART}", "--timeout=120s")
        site.kubectl("-n", namespace, *rollout)
        print(f"\noperator available {time.monotonic() - started:.1f} s after helm install")
        yield release
    finally:
        release.uninstall()
        site.kubectl("delete", "namespace", namespace, "--ignore-not-found", "--wait=false")
        site.kubectl(*scale, "--replicas=1")
        site.operator_pod()


def faulty(name: str) -> Json:
    """A NodeSet that only the webhook rejects, `spec.slurmd.env` being no list."""
    spec: Json = {"controllerRef": {"name": "absent"}, "replicas": 0, "slurmd": {"env": "A=b"}}
    return manifests.of("NodeSet", name, **spec)


def rejection(site: Site, namespace: str) -> str:
    """The answer to a faulty NodeSet, which is not stored; empty when it would be."""
    text = yaml.safe_dump(faulty("probe"))
    try:
        site.kubectl("apply", "-n", namespace, "--dry-run=server", "-f", "-", stdin=text)
    except LocalError as error:
        return str(error)
    return ""
