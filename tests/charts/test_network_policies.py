"""NetworkPolicies of both charts, judged on pods and ports as the operator renders them (A37)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from penstock.api.kubernetes.meta import Json
from penstock.decide.cluster.network import WAYS
from support.charts import rejection, render

# The first test that needs Helm compiles it, beside everything else.
pytestmark = pytest.mark.timeout(1800)

GOLDEN = Path(__file__).parents[1] / "golden"
NAMESPACE, OPERATOR, PROMETHEUS = "slurm", "penstock-system", "monitoring"
SSH = {22, 2222}
PORTS = {"slurmctld": 6817, "slurmd": 6818, "slurmdbd": 6819, "slurmrestd": 6820}
NEBIUS = {
    "controller": "slurmctld",
    "worker": "slurmd",
    "nodeset": "slurmd",
    "accounting": "slurmdbd",
    "rest": "slurmrestd",
    "login": "login",
}
"""Roles by the component in labels."""
METRICS = {"exporter": (8080, 8081), "controller": (6817,)}


@dataclass(frozen=True)
class Pod:
    """Labels of a pod, its namespace, and the ports that its containers declare."""

    labels: Json
    namespace: str = NAMESPACE
    ports: frozenset[int] = frozenset()


STRANGER = Pod({"app": "stranger"})
ELSEWHERE = Pod({"app.kubernetes.io/name": "slurmd"}, "other")


def pods_of(file: str) -> list[Pod]:
    """Pods of a recorded rendering."""
    found: list[Pod] = []
    for one in yaml.safe_load_all((GOLDEN / file).read_text()):
        spec = one.get("spec", {})
        template = one if one["kind"] == "Pod" else spec.get("template", spec)
        if "metadata" in template and "containers" in template.get("spec", {}):
            every = template["spec"]["containers"]
            ports = {p["containerPort"] for c in every for p in c.get("ports", ())}
            found.append(Pod(template["metadata"]["labels"], ports=frozenset(ports)))
    return found


def selects(selector: Json, labels: Json) -> bool:
    """Whether a label selector matches."""
    same = all(labels.get(key) == value for key, value in selector.get("matchLabels", {}).items())
    given: list[Json] = selector.get("matchExpressions", [])
    assert all(one["operator"] == "In" for one in given)
    return same and all(labels.get(one["key"]) in one["values"] for one in given)


def is_peer(peer: Json, source: Pod) -> bool:
    """Whether a peer of a rule, in a policy of `NAMESPACE`, is this pod."""
    space = {"kubernetes.io/metadata.name": source.namespace}
    if "namespaceSelector" in peer and not selects(peer["namespaceSelector"], space):
        return False
    if "namespaceSelector" not in peer and source.namespace != NAMESPACE:
        return False
    return "ipBlock" not in peer and selects(peer.get("podSelector", {}), source.labels)


def reaches(policies: list[Json], source: Pod, target: Pod, port: int) -> bool:
    """Whether a connection is allowed. Source: Kubernetes documentation, "Network Policies"."""
    chosen = [one["spec"] for one in policies if selects(one["spec"]["podSelector"], target.labels)]

    def allows(rule: Json) -> bool:
        ports = {one["port"] for one in rule.get("ports", ())}
        peers: list[Json] = rule.get("from", [])
        return (not ports or port in ports) and (
            not peers or any(is_peer(one, source) for one in peers)
        )

    return not chosen or any(allows(rule) for spec in chosen for rule in spec.get("ingress", ()))


def policies(chart: str, **given: Any) -> list[Json]:
    wanted = {"enabled": True, "operatorNamespace": OPERATOR, **given}
    values: Json = {"networkPolicies": wanted}
    if chart == "slurm-cluster":
        values["clusterName"] = "soperator"
    found = render(values, chart=chart, namespace=NAMESPACE)
    return [one for one in found.values() if one["kind"] == "NetworkPolicy"]


def role(pod: Pod) -> str:
    """Which of `WAYS` a pod is; empty for another one."""
    name = pod.labels.get("app.kubernetes.io/name", "")
    if name != "slurmcluster":
        return name
    return NEBIUS.get(pod.labels.get("app.kubernetes.io/component", ""), "")


CASES = {
    "slurm": ("full.yaml", "accounting.yaml"),
    "slurm-cluster": ("slurmcluster-5.0.yaml",),
}


def cluster(chart: str) -> list[Pod]:
    return [pod for file in CASES[chart] for pod in pods_of(file)]


def ways(pods: list[Pod]) -> Iterator[tuple[Pod, Pod, int]]:
    """Each connection that a cluster of these pods needs."""
    for target, sources in WAYS:
        for to in (pod for pod in pods if role(pod) == target):
            if "operator" in sources:
                yield Pod({}, OPERATOR), to, PORTS[target]
            yield from ((one, to, PORTS[target]) for one in pods if role(one) in sources)


@pytest.mark.parametrize("chart", CASES)
def test_daemons_reach_each_other_and_strangers_reach_only_sshd(chart: str) -> None:
    found, pods = policies(chart, sshPorts=sorted(SSH)), cluster(chart)
    assert {role(pod) for pod in pods} >= {*PORTS, "login"}
    wanted = list(ways(pods))
    assert wanted
    for source, target, port in wanted:
        assert reaches(found, source, target, port), (source.labels, target.labels, port)
    for target in pods:
        for port in target.ports | {6817, 6818, 6819, 6820}:
            for source in (STRANGER, ELSEWHERE, Pod({}, PROMETHEUS)):
                is_open = reaches(found, source, target, port)
                assert is_open is (port in SSH and role(target) in ("login", "slurmd")), (
                    target.labels,
                    port,
                )


@pytest.mark.parametrize("chart", CASES)
def test_only_the_named_addresses_and_scrapers_are_let_in(chart: str) -> None:
    peer = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "other"}}}
    given = {"sshFrom": ["192.0.2.0/24"], "scraperNamespaces": [PROMETHEUS], "alsoFrom": [peer]}
    found, scraper = policies(chart, **given), Pod({}, PROMETHEUS)
    for target in cluster(chart):
        component = target.labels.get("app.kubernetes.io/component", "")
        for port in target.ports:
            assert reaches(found, ELSEWHERE, target, port)
            assert not reaches(found, STRANGER, target, port)
        for port in METRICS.get(component, ()):
            assert reaches(found, scraper, target, port)
        assert not reaches(found, scraper, target, 6818)
    ssh = next(one for one in found if one["metadata"]["name"].endswith("-ssh"))
    assert ssh["spec"]["ingress"][0]["from"] == [{"ipBlock": {"cidr": "192.0.2.0/24"}}]


@pytest.mark.parametrize("chart", CASES)
def test_without_the_operators_namespace_they_are_rejected(chart: str) -> None:
    """Its questions to slurmrestd would be cut off."""
    said = rejection({"networkPolicies": {"enabled": True}}, chart=chart)
    assert "networkPolicies.operatorNamespace: name the namespace of the operator" in said
    assert not [one for one in render({}, chart=chart) if one.startswith("NetworkPolicy")]
