"""Hostile objects: each is rejected by its field, or becomes objects that Kubernetes takes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, cast

from hypothesis import event, given, settings

from penstock.api.admission import RelatedObjects
from penstock.api.kubernetes.kinds import ConfigMap
from penstock.api.kubernetes.meta import Json, KubeObject, ObjectMeta
from penstock.api.nebius import names
from penstock.api.nebius.jailed_config import JailedConfig
from penstock.api.nebius.nodeset import NodeSet
from penstock.api.nebius.slurmcluster import SlurmCluster
from penstock.api.registry import registry, rules_of, unsupported_fields
from penstock.decide.jail.file_assignment import assign_files
from penstock.decide.rollout.budget import max_unavailable
from penstock.render.nebius.config import config_maps, worker_names
from penstock.render.nebius.config.files import files, own_hash
from penstock.render.nebius.config.inputs import ConfigInputs
from penstock.render.nebius.config.left_out import left_out
from penstock.render.nebius.config.slurm_conf import partition_text
from penstock.render.parts.digest import canonical_json
from penstock.slurm.conf.document import Document
from penstock.slurm.conf.includes import resolved
from penstock.translate.nebius.cluster import accounting_link
from penstock.translate.nebius.jailed_files import jailed_files
from support import hostile, nebius
from support.nebius_clusters import Rendered, rendered

LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
WORKLOADS = ("StatefulSet", "Deployment", "Job")
Given = tuple[KubeObject, list[str]]


@settings(max_examples=150, deadline=None)
@given(hostile.objects())
def test_no_rule_raises_whatever_is_written(of: Given):
    """Each problem names a field by its path and has words about it."""
    obj, _ = of
    rules = rules_of(obj)
    for old in (None, nebius.made(hostile.FIXTURES[rules.info.resource.kind][0])):
        for one in registry().validate_change(obj, old, RelatedObjects()).problems:
            assert one.path.startswith(("spec", "metadata.name"))
            assert 0 < len(one.message) < 1000
    unsupported_fields(obj)
    for rule in (rules.references, rules.uses, rules.partitions, rules.advice):
        list(rule(obj))


@settings(max_examples=60, deadline=None)
@given(hostile.objects(("JailedConfig",)))
def test_files_of_the_jail_have_paths_in_it(of: Given):
    config = cast("JailedConfig", of[0])
    source = ConfigMap(metadata=ObjectMeta(name="x"), data={"a": "b", "slurm.conf": "c"})
    (found,) = assign_files([jailed_files(config, source)], "other", ["/etc/slurm/slurm.conf"])
    for one in found.files:
        assert one.path.startswith("/")
        assert not {"", ".", ".."} & set(one.path[1:].split("/"))
        assert one.path != "/etc/slurm/slurm.conf"
        assert 0 <= one.mode <= 0o777


@settings(max_examples=150, deadline=None)
@given(hostile.objects(("SlurmCluster", "NodeSet")))
def test_an_accepted_object_is_rendered_to_objects_that_kubernetes_takes(of: Given):
    obj, _ = of
    if registry().problems(obj):
        event("rejected")
        return
    event("rendered")
    found, inputs = whole(obj)
    canonical_json(found.objects())
    for one in found.objects():
        check_names(one)
    for spec in pods(found):
        check_pod(spec)
    for one in found.workers:
        assert max_unavailable(one, one.replicas) >= 1
    check_files(inputs)


def whole(obj: KubeObject) -> tuple[Rendered, ConfigInputs]:
    cluster, sets = obj, list[NodeSet]()
    if isinstance(obj, NodeSet):
        cluster, sets = nebius.made("slurmcluster-5.0-0"), [obj]
    declared = cast("SlurmCluster", cluster)
    prefix = names.workload_prefix(declared, keeps_plain_names=False, is_second=False)
    inputs = ConfigInputs(
        cluster=declared,
        node_sets=tuple(sets),
        prefix=prefix,
        accounting=accounting_link(declared),
    )
    return rendered(declared, sets, prefix), inputs


def check_names(one: Json) -> None:
    """Names of Services and pods are DNS labels, values of labels are such."""
    meta, kind = one["metadata"], one["kind"]
    limit = {"Service": 63, "Pod": 63, "StatefulSet": 52, "Job": 63}.get(kind, 253)
    assert len(meta["name"]) <= limit
    if kind in ("Service", "Pod", "StatefulSet"):
        assert LABEL.fullmatch(meta["name"])
    for value in meta.get("labels", {}).values():
        assert len(value) <= 63
        assert VALUE.fullmatch(value)


def pods(found: Rendered) -> Iterator[Json]:
    for one in found.objects():
        if one["kind"] in WORKLOADS:
            yield one["spec"]["template"]["spec"]
        elif one["kind"] == "Pod":
            yield one["spec"]


def check_pod(spec: Json) -> None:
    for one in spec.get("volumes", ()):
        assert LABEL.fullmatch(one["name"])
        assert one.get("persistentVolumeClaim", {"claimName": "x"})["claimName"]
    for one in (*spec.get("initContainers", ()), *spec["containers"]):
        mounts: list[Json] = one.get("volumeMounts", [])
        for mount in mounts:
            path, sub_path = mount["mountPath"], mount.get("subPath", "")
            assert path.startswith("/")
            assert path != "/"
            assert not {":", ".."} & {*path, *path.split("/")}
            assert not sub_path.startswith("/")
            assert ".." not in sub_path.split("/")
        assert all(isinstance(each["name"], str) for each in one.get("env", ()))
        assert all(0 < port["containerPort"] < 65_536 for port in one.get("ports", ()))


def check_files(inputs: ConfigInputs) -> None:
    """The operator's own file has its own keys, and no control character of a user."""
    data: dict[str, Any] = files(inputs)
    own = data.get("slurm_base.conf.noedit", data["slurm.conf"])
    assert not CONTROL.search(own)
    assert Document.parse(own).all("ClusterName") == (inputs.name,)
    own_hash(data)
    left_out(inputs)
    config_maps.config_map(inputs.cluster, "x", data)
    config_maps.partition_record(inputs.cluster, data)
    worker_names.partition_specs(inputs, partition_text(inputs))
    again = ConfigInputs(
        cluster=inputs.cluster,
        node_sets=inputs.node_sets,
        prefix=inputs.prefix,
        accounting=inputs.accounting,
        published=data,
        in_effect=resolved(data),
    )
    assert files(again) == data


def test_port_0_of_a_node_set_is_slurms_own():
    found, _ = whole(nebius.made("nodesets-5.0-0", {"spec.slurmd.port": 0}))
    (port,) = found.pod()["spec"]["containers"][0]["ports"]
    services = [one["spec"]["ports"] for one in found.objects() if one["kind"] == "Service"]
    assert port["containerPort"] == 6818
    assert all(each["port"] > 0 for ports in services for each in ports)
