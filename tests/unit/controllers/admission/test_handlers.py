"""The webhooks' answers out of the caches."""

from __future__ import annotations

import itertools
import json
from typing import Any

import msgspec
import pytest

from penstock.api.cluster import labels as app_labels
from penstock.api.kubernetes.kinds import ConfigMap, Node, Pod
from penstock.api.kubernetes.meta import Json, KubeObject
from penstock.api.registry import KINDS
from penstock.api.slinky import labels as slinky_labels
from penstock.controllers.admission.handlers import BIND, DEFAULT, VALIDATE, Admission
from penstock.controllers.runtime.caches import World
from penstock.controllers.runtime.settings import Settings
from penstock.kube import Client, Manager
from penstock.kube.webhook.review import Answer, answer
from unit.controllers.stage import put, world_of
from unit.kube.fake_api import FakeApi

GROUP = "slinky.slurm.net"
OTHERS = "slurm.nebius.ai"
TYPES = {i.resource.kind: i.type for i in KINDS if i.resource.group != OTHERS}
REF = {"controllerRef": {"name": "slurm"}}
YAML = "- topology: t\n  tree:\n    switches: [{switch: s1}, {switch: s2}]\n"


def manifest(kind: str, spec: Json, name: str = "a") -> Json:
    return {"metadata": {"name": name, "namespace": "slurm"}, "spec": spec}


def stored(kind: str, spec: Json, name: str = "a") -> KubeObject:
    return msgspec.convert(manifest(kind, spec, name), TYPES[kind])


def ask(world: World, path: str, **request: Any) -> Answer:
    """What is answered to a request that came as JSON."""
    given: list[Answer] = []
    handler = Admission(world).handlers[path]
    whole = {"uid": "u", "operation": "CREATE", "namespace": "slurm", "name": "a", **request}
    body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": whole}
    answer(json.dumps(body).encode(), lambda one: given.append(handler(one)) or given[0])
    return given[0]


def validate(world: World, kind: str, spec: Json | None, old: Json | None = None) -> Answer:
    new = manifest(kind, spec) if spec is not None else None
    before = manifest(kind, old) if old is not None else None
    operation = "DELETE" if new is None else "UPDATE" if before else "CREATE"
    return ask(
        world,
        VALIDATE,
        kind={"group": GROUP, "version": "v1beta1", "kind": kind},
        operation=operation,
        object=new,
        oldObject=before,
    )


@pytest.mark.parametrize("info", KINDS, ids=lambda info: info.resource.kind)
def test_every_kind_is_answered_at_the_path_of_slurm_operator_too(info: Any):
    """Slinky section 4: an old configuration that points here is answered."""
    handlers = Admission(world_of(FakeApi())).handlers
    group = info.resource.group.replace(".", "-")
    assert f"/validate-{group}-{info.resource.version}-{info.resource.kind.lower()}" in handlers
    assert {"/mutate--v1-binding", "/validate-slinky-slurm-net-v1beta1-nodeset"} <= set(handlers)


def test_a_fault_is_refused_and_what_is_absent_is_told():
    world = world_of(FakeApi())
    found = validate(world, "NodeSet", {**REF, "slurmd": {"env": "A=b"}})
    assert [one.field for one in found.causes] == ["spec.slurmd.env"]
    assert [one for one in found.warnings if "no Controller slurm" in one]
    put(world.controllers, stored("Controller", {}, "slurm"))
    assert validate(world, "NodeSet", REF) == Answer()


def test_two_nodesets_are_compared_and_one_is_not_compared_with_itself():
    world = world_of(FakeApi())
    put(world.controllers, stored("Controller", {}, "slurm"))
    own = {**REF, "template": {"spec": {"hostname": "gpu-"}}}
    put(world.nodesets, stored("NodeSet", own, "a"))
    assert validate(world, "NodeSet", {**own, "replicas": 2}, own) == Answer()
    put(world.nodesets, stored("NodeSet", REF, "gpu"))
    found = validate(world, "NodeSet", own)
    assert "NodeSet gpu" in found.causes[0].message
    put(world.nodesets, stored("NodeSet", {"controllerRef": {"name": "other"}}, "x"))
    assert validate(world, "NodeSet", {**REF, "template": {"spec": {"hostname": "x-"}}}) == Answer()


def test_a_type_that_cannot_be_read_is_told_with_its_path():
    world = world_of(FakeApi())
    found = validate(world, "NodeSet", {**REF, "replicas": "two"})
    assert [one.field for one in found.causes] == ["spec.replicas"]
    assert validate(world, "NodeSet", {**REF, "replicas": "three"}, {"replicas": "two"}).allowed


def test_the_files_of_config_maps_are_looked_at():
    world = world_of(FakeApi())
    files = ConfigMap(data={"slurm.conf": "", "gres.conf": ""})
    meta = msgspec.structs.replace(files.metadata, name="mine", namespace="slurm")
    put(world.config_maps, msgspec.structs.replace(files, metadata=meta))
    found = validate(world, "Controller", {"configFileRefs": [{"name": "mine"}]})
    assert [one.field for one in found.causes] == ["spec.configFileRefs[0].name"]


def test_a_delete_is_allowed_and_says_who_is_left():
    world = world_of(FakeApi())
    put(world.controllers, stored("Controller", {}, "a"))
    put(world.nodesets, stored("NodeSet", {"controllerRef": {"name": "a"}}, "compute"))
    found = validate(world, "Controller", None, {})
    assert found.allowed
    assert "NodeSet compute" in found.warnings[0]
    assert validate(world, "NodeSet", None, REF) == Answer()


def test_other_namespaces_and_other_kinds_are_none_of_ours():
    world = World(Manager(Client(FakeApi())), Settings(namespaces=("mine",)))
    assert validate(world, "NodeSet", {**REF, "slurmd": {"env": "A=b"}}) == Answer()
    wide = world_of(FakeApi())
    assert ask(wide, VALIDATE, kind={"group": "", "version": "v1", "kind": "Pod"}) == Answer()


@pytest.mark.parametrize(
    ("given", "patch"),
    [
        (None, {"op": "add", "path": "/spec", "value": {"clusterName": "slurm_a"}}),
        ({}, {"op": "add", "path": "/spec/clusterName", "value": "slurm_a"}),
    ],
)
def test_a_new_controller_is_given_what_it_would_be_called_anyway(given: Json | None, patch: Json):
    world = world_of(FakeApi())
    meta = manifest("Controller", {})["metadata"]
    body = {"metadata": meta} if given is None else {"metadata": meta, "spec": given}
    kind = {"group": GROUP, "version": "v1beta1", "kind": "Controller"}
    assert ask(world, DEFAULT, kind=kind, object=body).patch == (patch,)
    assert ask(world, DEFAULT, kind=kind, operation="UPDATE", object=body) == Answer()
    other = World(Manager(Client(FakeApi())), Settings(namespaces=("mine",)))
    assert ask(other, DEFAULT, kind=kind, object=body) == Answer()


def test_nothing_is_written_into_what_cannot_be_read_or_needs_nothing():
    world = world_of(FakeApi())
    for kind, spec in (("Controller", {"clusterName": 7}), ("NodeSet", REF)):
        of = {"group": GROUP, "version": "v1beta1", "kind": kind}
        assert ask(world, DEFAULT, kind=of, object=manifest(kind, spec)) == Answer()


def bind(world: World, **meta: Any) -> Answer:
    binding: Json = {
        "metadata": {"name": "worker-0", "namespace": "slurm", **meta},
        "target": {"kind": "Node", "name": "machine"},
    }
    return ask(world, BIND, name="worker-0", subResource="binding", object=binding)


VERSIONS = itertools.count(1)
"""A cache takes what is newer than what it has."""


def worker(name: str = "slurmd") -> Pod:
    labels = {app_labels.APP_NAME: name, slinky_labels.CLUSTER: "slurm"}
    meta: Json = {"name": "worker-0", "namespace": "slurm", "labels": labels}
    meta["resourceVersion"] = str(next(VERSIONS))
    return msgspec.convert({"metadata": meta}, Pod)


def machine(place: str) -> Node:
    notes = {slinky_labels.TOPOLOGY: place}
    version = str(next(VERSIONS))
    meta = {"name": "machine", "annotations": notes, "resourceVersion": version}
    return msgspec.convert({"metadata": meta}, Node)


@pytest.fixture
def world() -> World:
    found = world_of(FakeApi())
    meta = {"name": "files", "namespace": "slurm"}
    files = msgspec.convert({"metadata": meta, "data": {"topology.yaml": YAML}}, ConfigMap)
    put(found.config_maps, files)
    spec = {"configFileRefs": [{"name": "files"}]}
    put(found.controllers, stored("Controller", spec, "slurm"))
    put(found.pods, worker())
    put(found.nodes, machine("t:s1"))
    return found


def test_a_worker_gets_the_place_of_its_machine_with_its_binding(world: World):
    """Feature row 63: the pods/binding webhook, with its annotation `topology...net/spec`."""
    (patch,) = bind(world).patch
    assert patch == {
        "op": "add",
        "path": "/metadata/annotations",
        "value": {slinky_labels.TOPOLOGY: "t:s1"},
    }
    (patch,) = bind(world, annotations={"a": "b"}).patch
    assert patch["value"] == {"a": "b", slinky_labels.TOPOLOGY: "t:s1"}
    assert bind(world, annotations={slinky_labels.TOPOLOGY: "t:s1"}) == Answer()


def test_a_place_that_slurmctld_would_refuse_is_not_given(world: World):
    put(world.nodes, machine("t:s9"))
    assert bind(world) == Answer()
    put(world.nodes, machine(""))
    assert bind(world) == Answer()


def test_the_binding_of_any_other_pod_goes_through_untouched(world: World):
    put(world.pods, worker("slurmctld"))
    assert bind(world) == Answer()
    assert bind(world_of(FakeApi())) == Answer()
