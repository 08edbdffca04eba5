"""Defects of the original operator that rendered objects show: none is repeated.

Rows of `tests/compatibility/rows/26-soperator-defects.toml` that other tests show name these.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from penstock.api.kubernetes.meta import Json
from penstock.api.nebius.configuration import SlurmConfig
from penstock.api.registry import unsupported_fields
from penstock.render.nebius.config.files import files
from penstock.render.nebius.config.inputs import ConfigInputs
from penstock.slurm.conf.document import Document
from penstock.slurm.conf.includes import resolved
from support.nebius_clusters import CURRENT, OLDER, SHAPES, Rendered, of_shape

GPU = {"spec.gpu.enabled": True}
CONTROLLER = "spec.slurmNodes.controller"


def pods(found: Rendered) -> Iterator[Json]:
    """Pods and the templates of pods, of all kinds."""
    yield from (
        one["spec"]["template"]
        for one in found.objects()
        if one["kind"] in ("StatefulSet", "Deployment", "Job")
    )
    yield from (found.pod(number) for number in range(len(found.workers)))


def conf(found: Rendered) -> Document:
    inputs = ConfigInputs(cluster=found.inputs.cluster, node_sets=found.inputs.node_sets)
    return Document.parse(resolved(files(inputs)))


@pytest.mark.parametrize("shape", SHAPES)
def test_workers_need_no_topology_labels_of_kubernetes_nodes(shape: str):
    """D47: with the default topologyPlugin, also where workers have GPUs."""
    assert SlurmConfig().topology_plugin == "topology/tree"
    found = of_shape(shape, node_set=GPU)
    assert conf(found).get("TopologyPlugin") is None
    spec = found.pod()["spec"]
    assert [one["name"] for one in spec["initContainers"]] == ["munge"]
    assert "topology" not in json.dumps(spec)


@pytest.mark.parametrize("shape", SHAPES)
def test_each_service_selects_pods_and_leads_to_a_port_of_theirs(shape: str):
    """D55: the original's Service of sconfigcontroller's metrics selects no pod."""
    found = of_shape(shape)
    every = list(pods(found))
    for one in (each for each in found.objects() if each["kind"] == "Service"):
        selector = one["spec"]["selector"].items()
        selected = [pod for pod in every if selector <= pod["metadata"]["labels"].items()]
        assert selected, one["metadata"]["name"]
        for pod in selected:
            ports = [port for each in pod["spec"]["containers"] for port in each.get("ports", ())]
            names = {port["name"] for port in ports} | {port["containerPort"] for port in ports}
            assert {port["targetPort"] for port in one["spec"]["ports"]} & names


def test_a_monitor_finds_the_services_of_its_own_cluster_only():
    """D56: the original's finds those of every cluster of the namespace."""
    found = of_shape(CURRENT, {f"{CONTROLLER}.openMetrics.enabled": True})
    monitor = next(one for one in found.objects() if one["kind"] == "ServiceMonitor")["spec"]
    labels = monitor["selector"]["matchLabels"]
    assert labels["app.kubernetes.io/instance"] == found.inputs.name
    services = [one for one in found.objects() if one["kind"] == "Service"]
    chosen = [one for one in services if labels.items() <= one["metadata"]["labels"].items()]
    assert [one["metadata"]["name"] for one in chosen] == ["soperator-controller-svc"]


@pytest.mark.parametrize("shape", SHAPES)
def test_pods_with_users_have_no_token_and_no_privilege(shape: str):
    """D65: nor the namespaces of their Kubernetes node."""
    found = of_shape(shape)
    logins = found.find("StatefulSet", f"{found.inputs.prefix}login")["spec"]["template"]
    for spec in (logins["spec"], found.pod()["spec"]):
        assert spec["automountServiceAccountToken"] is False
        assert not {"hostNetwork", "hostPID", "hostIPC"} & spec.keys()
        for one in spec["containers"]:
            assert one["securityContext"]["capabilities"] == {"add": ["SYS_ADMIN"]}
            assert "privileged" not in one["securityContext"]


@pytest.mark.parametrize("shape", SHAPES)
def test_no_object_has_a_domain_a_port_or_a_partition_that_the_user_may_choose(shape: str):
    """D68."""
    port = "spec.slurmNodes.rest.rest.port"
    raw = {"configType": "custom", "rawConfig": ["PartitionName=mine Nodes=ALL"]}
    changes = {port: 7820, "spec.partitionConfiguration": raw}
    found = of_shape(shape, changes, cluster_domain="example.internal")
    text = json.dumps(found.objects())
    assert "cluster.local" not in text
    assert "svc.example.internal" in text
    rest = found.find("Service", f"{found.inputs.name}-rest-svc")["spec"]["ports"]
    assert [one["port"] for one in rest] == [7820]
    writer = found.find("Deployment", f"{found.inputs.prefix}sconfigcontroller")["spec"]
    (container,) = writer["template"]["spec"]["containers"]
    assert any(one.endswith("svc:7820") for one in container["args"])
    assert [one.name for one in conf(found).records("PartitionName")] == ["mine"]


@pytest.mark.parametrize("shape", SHAPES)
def test_daemons_write_their_logs_where_kubectl_finds_them(shape: str):
    """D69: to standard error, without a program between them; slurmrestd at its usual level."""
    found = of_shape(shape)
    names = ("StatefulSet", "controller"), ("StatefulSet", "login"), ("Deployment", "rest")
    for kind, name in names:
        spec = found.find(kind, f"{found.inputs.prefix}{name}")["spec"]["template"]["spec"]
        assert "multilog" not in json.dumps(spec)
        assert not any(one.startswith("-v") for one in spec["containers"][0].get("args", ()))
    assert "multilog" not in json.dumps(found.pod())


def test_features_of_the_cluster_are_those_of_its_shape():
    """D45: the node set of each worker set follows a feature with which slurmd registers."""
    for shape in (OLDER, CURRENT):
        found = of_shape(shape, {"spec.partitionConfiguration": {"configType": "default"}})
        document = conf(found)
        for number, one in enumerate(found.workers):
            record = document.record("NodeSet", one.names.feature)
            assert record is not None
            env = found.pod(number)["spec"]["containers"][0]["env"]
            options = next(each for each in env if each["name"] == "SLURMD_OPTIONS")["value"]
            assert f"Features={record.get('Feature')}" in options


@pytest.mark.parametrize("shape", SHAPES)
def test_one_pod_alone_has_the_labels_of_slurmctld(shape: str):
    """S091, D67: one pod has the label of slurmctld's component, and a size above 1 is named."""
    found = of_shape(shape, {f"{CONTROLLER}.size": 3})
    labels = [one["metadata"]["labels"]["app.kubernetes.io/component"] for one in pods(found)]
    assert labels.count("controller") == 1
    controller = found.find("StatefulSet", f"{found.inputs.prefix}controller")
    assert controller["spec"]["replicas"] == 1
    template = controller["spec"]["template"]["metadata"]["labels"]
    assert template["slurm.nebius.ai/controller-type"] == "main"
    assert "DaemonSet" not in {one["kind"] for one in found.objects()}
    assert any("controller.size" in one for one in unsupported_fields(found.inputs.cluster))


@pytest.mark.parametrize("shape", SHAPES)
def test_a_budget_forbids_each_eviction_of_a_worker_with_a_job(shape: str):
    """D66: whatever number of pods Kubernetes expects of a SlurmCluster or NodeSet."""
    found = of_shape(shape)
    (budget,) = (one for one in found.objects() if one["kind"] == "PodDisruptionBudget")
    assert budget["spec"].keys() == {"minAvailable", "selector"}
    assert budget["spec"]["minAvailable"] > 1_000_000
    selector = budget["spec"]["selector"]["matchLabels"].items()
    for number, workers in enumerate(found.workers):
        assert workers.protect_busy_pods
        idle = found.pod(number)["metadata"]["labels"]
        assert not selector <= idle.items()
        assert selector <= {**idle, workers.marks.protect: "true"}.items()
