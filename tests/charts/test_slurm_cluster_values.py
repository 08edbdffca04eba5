"""Every key of the schema of the chart `slurm-cluster` changes an object, or is listed as idle."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import pytest
import yaml

from penstock.api.kubernetes.meta import Json
from penstock.local import charts
from penstock.local.errors import LocalError
from support.charts import (
    FIXTURES,
    REGISTRY,
    Leaf,
    another,
    at,
    defaults,
    leaves,
    put,
    render,
    schema,
)

# The first test that needs Helm compiles it, on a machine where everything else compiles as well.
pytestmark = pytest.mark.timeout(1800)

CHART = "slurm-cluster"
IDLE = "Without effect"
"""How the description of a key begins that changes no object."""
PARTS = ("container", "sidecar", "resources", "volume")
"""Shapes that stand in many places: each is tried whole in one place, and by one key elsewhere."""
BESIDE: dict[str, Json] = {
    # What another value hides: that one is taken away first.
    "images.populateJailTag": {"images.populateJailRepository": "r"},
    "images.populateJailRepository": {"images.populateJailTag": "1"},
    "images.populateJailCudaVersions": {
        "images.populateJailRepository": "r",
        "images.populateJailTag": "1",
        "cudaMajorVersion": "another",
    },
    "cudaVersion": {"images.populateJailRepository": "r", "images.populateJailTag": "1"},
    "cudaMajorVersion": {
        "images.populateJailRepository": "r",
        "images.populateJailTag": "1",
        "images.populateJailCudaVersions": {"1": "12.9.0"},
    },
    "healthCheckConfig": {"healthCheckConfig.healthCheckProgram": "/own/program"},
    "images.mariaDB": {
        "slurmNodes.accounting.externalDB.enabled": False,
        "slurmNodes.accounting.mariadbOperator.enabled": True,
    },
    "images.sssd": {"slurmNodes.sssd.image": None},
    "slurmNodes.accounting.embeddedDB": {
        "slurmNodes.accounting.externalDB.enabled": False,
        "slurmNodes.accounting.embeddedDB.enabled": True,
    },
    "imagePullSecrets": {"populateJail.imagePullSecrets": None},
    "slurmScripts.prolog": {"slurmScripts": {}},
    "partitionConfiguration.partitions": {"partitionConfiguration": {"configType": "structured"}},
    "slurmNodes.login.sshdServiceNodePort": {"slurmNodes.login.sshdServiceType": "NodePort"},
    "slurmNodes.accounting.mariadbOperator": {
        "slurmNodes.accounting.externalDB.enabled": False,
        "slurmNodes.accounting.mariadbOperator.enabled": True,
    },
}
MOUNTS = [{"name": "more", "mountPath": "/more", "volumeSourceName": "other"}]
VALUES: dict[str, Any] = {
    "slurmNodes.controller.placeholder.enabled": False,
    "clusterType": "cpu",
    "slurmNodes.worker.maxUnavailable": "30%",
    "priorityClasses.values": {"login": 5},
    "partitionConfiguration.partitions": [{"name": "a"}],
    "cudaMajorVersion": "1",
    "healthCheckConfig.healthCheckProgram": "/own/check",
}
"""What a key is set to where any word would have no effect."""


def values(name: str) -> Json:
    return yaml.safe_load((FIXTURES / CHART / f"{name}.yaml").read_text())


def contexts() -> Iterator[Json]:
    """Values of both shapes with everything on."""
    everything = values("everything")
    yield everything
    worker: Json = {"size": 1, "nodeExporter": {"enabled": True}}
    yield put(everything, ["slurmNodes", "worker"], worker)


def keys() -> list[Leaf]:
    whole = schema(CHART)
    found: list[Leaf] = []
    seen: set[tuple[str, ...]] = set()
    for leaf in leaves(whole, whole):
        if "*" in leaf.path:  # slurmScripts: tests/charts/test_slurm_cluster_chart.py
            continue
        name, below = part_of(leaf, whole)
        place = leaf.path[: len(leaf.path) - len(below)]
        if name and (name, *below) in seen and place in seen:
            continue
        seen |= {(name, *below), place}
        found.append(leaf)
    return found


def part_of(leaf: Leaf, whole: Json) -> tuple[str, tuple[str, ...]]:
    """The shape that a leaf is within, and its path there."""
    node: Json = whole
    for index, step in enumerate(leaf.path):
        node = node["properties"].get(step, {})
        name = str(node.get("$ref", "")).rpartition("/")[2]
        if name in PARTS:
            return name, leaf.path[index + 1 :]
        node = whole["$defs"][name] if name else node
    return "", ()


def changes(leaf: Leaf) -> bool:
    """Whether another value at the leaf changes an object of one of the shapes."""
    return any(_changes(leaf, context) for context in contexts())


def _changes(leaf: Leaf, given: Json) -> bool:
    path = str(leaf)
    for of, others in BESIDE.items():
        if path == of or path.startswith(f"{of}."):
            for other, value in others.items():
                given = put(given, other.split("."), value)
    usual = at(given, leaf.path)
    usual = at(defaults(CHART), leaf.path) if usual is None else usual
    mounts = leaf.path[-1] in ("customMounts", "jailSubMounts")
    other = MOUNTS if mounts else VALUES.get(path)
    other = another(usual, leaf.node, schema(CHART)) if other is None else other
    try:
        before = render(given, chart=CHART, release="r", namespace="n")
        return before != render(
            put(given, leaf.path, other), chart=CHART, release="r", namespace="n"
        )
    except LocalError as rejected:
        # What a template rejects, it has read.
        return "execution error" in str(rejected)


def is_idle(leaf: Leaf) -> bool:
    return leaf.description.startswith(IDLE) or str(leaf).startswith(MONITORS)


MONITORS = ("nodeExporter.podMonitor", "sConfigController.serviceMonitor")
"""Only where the Prometheus operator's kinds are installed: the test below."""


def test_every_key_of_the_schema_changes_an_object_or_is_listed_as_idle() -> None:
    found = [one for one in keys() if not is_idle(one)]
    with ThreadPoolExecutor(2) as pool:
        changed = list(pool.map(changes, found))
    assert [str(one) for one, did in zip(found, changed, strict=True) if not did] == []


def test_every_default_is_a_key_of_the_schema() -> None:
    known = {str(one) for one in leaves(schema(CHART), schema(CHART))}

    def below(node: Any, path: str) -> Iterator[str]:
        if path in known or not isinstance(node, dict):
            yield path
            return
        for key, one in cast("Json", node).items():
            yield from below(one, f"{path}.{key}" if path else str(key))

    unknown = set(below(defaults(CHART), "")) - known
    # A key whose value is null or empty stands for all keys below it.
    assert {one for one in unknown if not any(k.startswith(f"{one}.") for k in known)} == set()


def test_a_pod_monitor_is_made_where_its_kind_is_installed() -> None:
    arguments = (
        *("template", "every", str(charts.CHARTS / CHART)),
        *("--set", f"global.imageRegistry={REGISTRY}"),
        *("--set", "slurmNodes.controller.nodeExporter.enabled=true"),
        *("--set", "nodeExporter.podMonitor.interval=7s"),
    )
    assert "kind: PodMonitor" not in charts.helm(*arguments)
    text = charts.helm(*arguments, "--api-versions", "monitoring.coreos.com/v1")
    monitor = next(one for one in charts.objects(text) if one["kind"] == "PodMonitor")
    assert monitor["metadata"]["name"] == "slurm1-node-exporter"
    assert monitor["spec"]["podMetricsEndpoints"][0]["interval"] == "7s"
    assert monitor["spec"]["selector"]["matchExpressions"][0]["values"] == ["controller"]
