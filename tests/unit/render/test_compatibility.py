"""What slurm-operator renders, or gets wrong, and no other test of rendering is about."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs

from penstock.api.kubernetes.meta import Json
from penstock.api.slinky.nodeset import NodeSetStatus
from penstock.render.config.sections import node_count_of
from penstock.render.slinky.cluster import login as loginset
from penstock.render.slinky.cluster import slurmctld as controller
from penstock.render.slinky.cluster import slurmrestd as restapi
from penstock.render.slinky.config.slurm_conf import slurm_conf
from penstock.render.slinky.nodeset import worker_pod as worker
from penstock.slurm.conf.document import Document

GENERATED = {"priorityClassName": "high", "runtimeClassName": "gvisor"}


def templates(bundle: Any) -> dict[str, Json]:
    """Pod templates by the kind that they are made for."""
    cluster = bundle.cluster
    made = {
        "Controller": controller.objects(cluster),
        "RestApi": restapi.objects(cluster, bundle.restapi),
        "LoginSet": loginset.objects(cluster, bundle.loginset),
    }
    found = {
        kind: next(one["spec"]["template"] for one in objects if "template" in one.get("spec", {}))
        for kind, objects in made.items()
    }
    return {**found, "NodeSet": worker.pod(cluster, cluster.nodesets[0], 0)}


def files(pod: Json, volume: str) -> dict[str, tuple[str, str]]:
    """Files of a projected volume: the object and the key that each comes from."""
    sources = next(v for v in pod["spec"]["volumes"] if v["name"] == volume)["projected"]["sources"]
    return {
        item["path"]: (one["name"], item["key"])
        for source in sources
        for one in source.values()
        for item in one.get("items", ())
        if "key" in item
    }


def test_another_slurm_key_restarts_who_reads_it_once(load: Any):
    """D17, feature row 10: upstream leaves logins with the old one."""
    bundle = load("minimal")
    other = replace(bundle, cluster=replace(bundle.cluster, clients_key_hash="another"))
    before, after = templates(bundle), templates(other)
    assert {kind for kind in before if before[kind] != after[kind]} == {"LoginSet"}


@pytest.mark.parametrize("kind", ["Controller", "RestApi", "LoginSet", "NodeSet"])
def test_marks_of_an_object_are_not_those_of_its_pods(kind: str, load: Any):
    """D38, S065: `kubectl apply` and `kubectl annotate` write some at every object."""
    plain, marked = load("minimal"), load("minimal")
    cluster = marked.cluster
    for one in (cluster.controller, marked.restapi, marked.loginset, *cluster.nodesets):
        one.metadata.annotations["kubectl.kubernetes.io/last-applied-configuration"] = "{}"
        one.metadata.labels["helm.sh/chart"] = "slurm-9.9.9"
    assert templates(marked)[kind] == templates(plain)[kind]


def test_keys_are_mounted_as_the_secrets_have_them_under_slurms_names(load: Any):
    """S067, S068, feature row 10: whatever the keys of the Secrets are called."""
    refs = {
        "slurmKeyRef": {"name": "external-auth-slurm", "key": "slurm.key"},
        "jwtHs256KeyRef": {"name": "external-auth-jwths256", "key": "jwt_hs256.key"},
    }
    found = templates(load("minimal", controller=refs))
    slurm_key = ("external-auth-slurm", "slurm.key")
    mounted = files(found["Controller"], "slurm-etc")
    assert mounted["slurm.key"] == slurm_key
    assert mounted["jwt.key"] == ("external-auth-jwths256", "jwt_hs256.key")
    ring = "slurm-auth-slurm-ring"
    assert mounted["slurm.jwks"] == (ring, "slurmctld.jwks")
    assert files(found["NodeSet"], "slurm-etc") == {
        "slurm.key": slurm_key,
        "slurm.jwks": (ring, "workers.jwks"),
    }
    assert files(found["LoginSet"], "slurm-config") == {
        "slurm.key": slurm_key,
        "slurm.jwks": (ring, "clients.jwks"),
    }


def test_scripts_are_named_and_mounted_by_who_runs_them(load: Any):
    """Feature row 12: slurmctld's by their paths, those of nodes as configless ships them."""
    bundle = load("full")
    lines = slurm_conf(bundle.cluster).splitlines()
    assert "PrologSlurmctld=/etc/slurm/prolog-slurmctld-a.sh" in lines
    assert [line for line in lines if line.startswith(("Prolog=", "Epilog="))] == [
        "Prolog=prolog-10-a.sh",
        "Prolog=prolog-20-b.sh",
        "Epilog=epilog-10-a.sh",
    ]
    volumes = templates(bundle)["Controller"]["spec"]["volumes"]
    sources = next(v for v in volumes if v["name"] == "slurm-etc")["projected"]["sources"]
    mounted = [one["configMap"]["name"] for one in sources if "configMap" in one]
    assert {"prologs", "epilogs", "prologs-slurmctld"} <= set(mounted)


@pytest.mark.parametrize(
    ("metrics", "line"), [({"enabled": True}, "metrics/openmetrics"), ({}, None)]
)
def test_slurmctld_serves_metrics_when_asked(metrics: Json, line: str | None, load: Any):
    """Feature row 13."""
    text = slurm_conf(load("minimal", controller={"metrics": metrics}).cluster)
    assert Document.parse(text).get("MetricsType") == line


def test_a_users_own_number_of_nodes_counts(load: Any):
    """D29."""
    text = slurm_conf(load("minimal", controller={"extraConf": "MaxNodeCount=5000"}).cluster)
    assert Document.parse(text).get("MaxNodeCount") == "5000"
    assert node_count_of(text) == 1024


@pytest.mark.parametrize(
    ("workers", "mode", "had", "count"),
    [
        (1, "StatefulSet", 0, 1024),
        (1024, "StatefulSet", 1024, 1024),
        (1025, "StatefulSet", 1024, 2048),
        (5000, "StatefulSet", 0, 8192),
        (3, "StatefulSet", 4096, 4096),
        (1500, "DaemonSet", 1024, 2048),
    ],
)
def test_there_is_room_for_all_workers_in_steps_that_double(
    workers: int, mode: str, had: int, count: int, load: Any
):
    """D29, feature row 24: a step is a reconfigure, and one back would be another."""
    cluster = load("minimal", nodeset={"replicas": workers, "scalingMode": mode}).cluster
    told = [structs.replace(one, status=NodeSetStatus(desired=workers)) for one in cluster.nodesets]
    text = slurm_conf(replace(cluster, nodesets=tuple(told), node_count=had))
    assert Document.parse(text).get("MaxNodeCount") == str(count)
    assert node_count_of(text) == count


@pytest.mark.parametrize("line", ["MaxNodeCount=5000", "MaxNodeCount=", "MaxNodeCount=many", ""])
def test_a_number_that_is_not_ours_is_not_kept(line: str):
    """D29."""
    assert node_count_of(f"ClusterName=x\n{line}\n") == 0


def test_a_worker_with_ssh_is_whole_whether_or_not_its_files_exist(load: Any):
    """D44: upstream makes a pod of nothing when it cannot read them."""
    ssh = {"enabled": True, "sssdConfRef": {"name": "absent", "key": "sssd.conf"}}
    spec = templates(load("minimal", nodeset={"ssh": ssh}))["NodeSet"]["spec"]
    assert [one["name"] for one in spec["containers"]] == ["slurmd"]
    assert {"ssh-config", "sssd-conf"} <= {one["name"] for one in spec["volumes"]}


def test_workers_and_logins_find_workers_by_their_short_names(load: Any):
    """Feature row 53."""
    found = templates(load("minimal"))
    search = ["slurm-workers-slurm.slurm.svc.cluster.local"]
    assert found["NodeSet"]["spec"]["subdomain"] == "slurm-workers-slurm"
    for kind in ("NodeSet", "LoginSet"):
        assert found[kind]["spec"]["dnsConfig"]["searches"] == search


def test_devices_of_a_resource_claim_reach_slurmd(load: Any):
    """Feature row 56: a ComputeDomain's channel, and any other claim of a device."""
    claims = [{"name": "channel", "resourceClaimTemplateName": "domain-channel"}]
    nodeset = {
        "template": {"spec": {"resourceClaims": claims, **GENERATED}},
        "slurmd": {"resources": {"claims": [{"name": "channel"}]}},
    }
    spec = templates(load("minimal", nodeset=nodeset))["NodeSet"]["spec"]
    assert spec["resourceClaims"] == claims
    assert spec["containers"][0]["resources"] == {"claims": [{"name": "channel"}]}


@pytest.mark.parametrize("kind", ["Controller", "RestApi", "LoginSet", "NodeSet"])
def test_a_class_of_priority_is_the_users(kind: str, load: Any):
    """Feature row 60."""
    given = {kind.lower(): {"template": {"spec": GENERATED}}}
    assert GENERATED.items() <= templates(load("minimal", **given))[kind]["spec"].items()


def test_gpus_are_asked_for_and_declared_where_the_user_declares_them(load: Any):
    """Feature row 55: the device plugin's resource at the pod, Gres at the node, and gres.conf."""
    gpus = {"slurmd": {"resources": {"limits": {"nvidia.com/gpu": 2}}}, "extraConf": "Gres=gpu:2"}
    controller_ = {"configFileRefs": [{"name": "slinky-config-extra"}]}
    bundle = load("minimal", nodeset=gpus, controller=controller_)
    slurmd = templates(bundle)["NodeSet"]["spec"]["containers"][0]
    assert slurmd["resources"]["limits"] == {"nvidia.com/gpu": 2}
    assert "'Features=compute Gres=gpu:2'" in slurmd["args"]
    volumes = templates(bundle)["Controller"]["spec"]["volumes"]
    assert {"configMap": {"name": "slinky-config-extra"}} in next(
        v for v in volumes if v["name"] == "slurm-etc"
    )["projected"]["sources"]
