"""The webhooks' answers out of the caches."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from penstock.api.cluster import labels as app_labels
from penstock.api.kubernetes.kinds import SECRETS, ConfigMap, Node, Pod, Secret
from penstock.api.kubernetes.meta import Json, KubeObject
from penstock.api.registry import registry
from penstock.api.slinky import labels as slinky_labels
from penstock.controllers.admission.binding import BIND, PodBinding
from penstock.controllers.admission.handlers import DEFAULT, VALIDATE, Admission
from penstock.controllers.observed.slinky_clusters import SlinkyClusters
from penstock.kube.webhook.review import Answer, Handler, answer
from unit.controllers.stage import new_clusters, put

GROUP = "slinky.slurm.net"
OTHERS = "slurm.nebius.ai"
TYPES = {i.resource.kind: i.type for i in registry().kinds if i.resource.group != OTHERS}
REF = {"controllerRef": {"name": "slurm"}}
YAML = "- topology: t\n  tree:\n    switches: [{switch: s1}, {switch: s2}]\n"


def manifest(kind: str, spec: Json, name: str = "a") -> Json:
    return {"metadata": {"name": name, "namespace": "slurm"}, "spec": spec}


def stored(kind: str, spec: Json, name: str = "a") -> KubeObject:
    return msgspec.convert(manifest(kind, spec, name), TYPES[kind])


def handlers(clusters: SlinkyClusters, namespaces: tuple[str, ...] = ()) -> Mapping[str, Handler]:
    rules = Admission(clusters.caches.store.of, namespaces).handlers
    return {**rules, BIND: PodBinding(clusters).bind}


def ask(
    clusters: SlinkyClusters, path: str, namespaces: tuple[str, ...] = (), **request: Any
) -> Answer:
    """The answer to a request that came as JSON, where these namespaces are watched."""
    given: list[Answer] = []
    handler = handlers(clusters, namespaces)[path]
    whole = {"uid": "u", "operation": "CREATE", "namespace": "slurm", "name": "a", **request}
    body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": whole}
    answer(json.dumps(body).encode(), lambda one: given.append(handler(one)) or given[0])
    return given[0]


def validate(
    clusters: SlinkyClusters, kind: str, spec: Json | None, old: Json | None = None
) -> Answer:
    new = manifest(kind, spec) if spec is not None else None
    before = manifest(kind, old) if old is not None else None
    operation = "DELETE" if new is None else "UPDATE" if before else "CREATE"
    return ask(
        clusters,
        VALIDATE,
        kind={"group": GROUP, "version": "v1beta1", "kind": kind},
        operation=operation,
        object=new,
        oldObject=before,
    )


@pytest.mark.parametrize("info", registry().kinds, ids=lambda info: info.resource.kind)
def test_every_kind_is_answered_at_the_path_of_slurm_operator_too(info: Any):
    """Slinky section 4: an old configuration that points here is answered."""
    paths = handlers(new_clusters())
    group = info.resource.group.replace(".", "-")
    assert f"/validate-{group}-{info.resource.version}-{info.resource.kind.lower()}" in paths
    assert {"/mutate--v1-binding", "/validate-slinky-slurm-net-v1beta1-nodeset"} <= set(paths)


def test_a_fault_is_refused_and_what_is_absent_is_told():
    clusters = new_clusters()
    found = validate(clusters, "NodeSet", {**REF, "slurmd": {"env": "A=b"}})
    assert [one.field for one in found.causes] == ["spec.slurmd.env"]
    assert [one for one in found.warnings if "no Controller slurm" in one]
    put(clusters.caches.controllers, stored("Controller", {}, "slurm"))
    assert validate(clusters, "NodeSet", REF) == Answer()


def test_two_nodesets_are_compared_and_one_is_not_compared_with_itself():
    clusters = new_clusters()
    put(clusters.caches.controllers, stored("Controller", {}, "slurm"))
    own = {**REF, "template": {"spec": {"hostname": "gpu-"}}}
    put(clusters.caches.nodesets, stored("NodeSet", own, "a"))
    assert validate(clusters, "NodeSet", {**own, "replicas": 2}, own) == Answer()
    put(clusters.caches.nodesets, stored("NodeSet", REF, "gpu"))
    found = validate(clusters, "NodeSet", own)
    assert "NodeSet gpu" in found.causes[0].message
    put(clusters.caches.nodesets, stored("NodeSet", {"controllerRef": {"name": "other"}}, "x"))
    assert (
        validate(clusters, "NodeSet", {**REF, "template": {"spec": {"hostname": "x-"}}}) == Answer()
    )


def test_a_type_that_cannot_be_read_is_told_with_its_path():
    clusters = new_clusters()
    found = validate(clusters, "NodeSet", {**REF, "replicas": "two"})
    assert [one.field for one in found.causes] == ["spec.replicas"]
    assert validate(clusters, "NodeSet", {**REF, "replicas": "three"}, {"replicas": "two"}).allowed


def test_the_files_of_config_maps_are_looked_at():
    clusters = new_clusters()
    files = ConfigMap(data={"slurm.conf": "", "gres.conf": ""})
    meta = msgspec.structs.replace(files.metadata, name="mine", namespace="slurm")
    put(clusters.caches.config_maps, msgspec.structs.replace(files, metadata=meta))
    found = validate(clusters, "Controller", {"configFileRefs": [{"name": "mine"}]})
    assert [one.field for one in found.causes] == ["spec.configFileRefs[0].name"]


def test_an_answer_does_not_depend_on_secrets_and_config_maps_that_a_caller_may_not_read():
    """Audit A26: a forged review showed which Secrets exist, and the files of each ConfigMap."""
    clusters = new_clusters()
    spec = {
        "slurmKeyRef": {"name": "mine", "key": "k"},
        "configFileRefs": [{"name": "mine"}],
        "prologScriptRefs": [{"name": "mine"}],
    }
    absent = validate(clusters, "Controller", spec)
    meta = msgspec.structs.replace(ConfigMap().metadata, name="mine", namespace="slurm")
    put(clusters.caches.config_maps, ConfigMap(metadata=meta, data={"private.txt": ""}))
    put(clusters.caches.store.of(SECRETS), Secret(metadata=meta, data={"k": "aw=="}))
    assert validate(clusters, "Controller", spec) == absent == Answer()


def test_a_delete_is_allowed_and_says_who_is_left():
    clusters = new_clusters()
    put(clusters.caches.controllers, stored("Controller", {}, "a"))
    put(clusters.caches.nodesets, stored("NodeSet", {"controllerRef": {"name": "a"}}, "compute"))
    found = validate(clusters, "Controller", None, {})
    assert found.allowed
    assert "NodeSet compute" in found.warnings[0]
    assert validate(clusters, "NodeSet", None, REF) == Answer()


def test_other_namespaces_and_other_kinds_are_none_of_ours():
    wide, body = new_clusters(), manifest("NodeSet", {**REF, "slurmd": {"env": "A=b"}})
    kind = {"group": GROUP, "version": "v1beta1", "kind": "NodeSet"}
    assert ask(wide, VALIDATE, ("mine",), kind=kind, object=body) == Answer()
    assert not ask(wide, VALIDATE, kind=kind, object=body).allowed
    assert ask(wide, VALIDATE, kind={"group": "", "version": "v1", "kind": "Pod"}) == Answer()


@pytest.mark.parametrize(
    ("given", "patch"),
    [
        (None, {"op": "add", "path": "/spec", "value": {"clusterName": "slurm_a"}}),
        ({}, {"op": "add", "path": "/spec/clusterName", "value": "slurm_a"}),
    ],
)
def test_a_new_controller_is_given_what_it_would_be_called_anyway(given: Json | None, patch: Json):
    clusters = new_clusters()
    meta = manifest("Controller", {})["metadata"]
    body = {"metadata": meta} if given is None else {"metadata": meta, "spec": given}
    kind = {"group": GROUP, "version": "v1beta1", "kind": "Controller"}
    assert ask(clusters, DEFAULT, kind=kind, object=body).patch == (patch,)
    assert ask(clusters, DEFAULT, kind=kind, operation="UPDATE", object=body) == Answer()
    other = new_clusters()
    assert ask(other, DEFAULT, ("mine",), kind=kind, object=body) == Answer()


def test_nothing_is_written_into_what_cannot_be_read_or_needs_nothing():
    clusters = new_clusters()
    for kind, spec in (("Controller", {"clusterName": 7}), ("NodeSet", REF)):
        of = {"group": GROUP, "version": "v1beta1", "kind": kind}
        assert ask(clusters, DEFAULT, kind=of, object=manifest(kind, spec)) == Answer()


def bind(clusters: SlinkyClusters, **meta: Any) -> Answer:
    binding: Json = {
        "metadata": {"name": "worker-0", "namespace": "slurm", **meta},
        "target": {"kind": "Node", "name": "machine"},
    }
    return ask(clusters, BIND, name="worker-0", subResource="binding", object=binding)


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
def clusters() -> SlinkyClusters:
    found = new_clusters()
    meta = {"name": "files", "namespace": "slurm"}
    files = msgspec.convert({"metadata": meta, "data": {"topology.yaml": YAML}}, ConfigMap)
    put(found.caches.config_maps, files)
    spec = {"configFileRefs": [{"name": "files"}]}
    put(found.caches.controllers, stored("Controller", spec, "slurm"))
    put(found.caches.pods, worker())
    put(found.caches.nodes, machine("t:s1"))
    return found


def test_a_worker_gets_the_place_of_its_machine_with_its_binding(clusters: SlinkyClusters):
    """Feature row 63: the pods/binding webhook, with its annotation `topology...net/spec`."""
    (patch,) = bind(clusters).patch
    assert patch == {
        "op": "add",
        "path": "/metadata/annotations",
        "value": {slinky_labels.TOPOLOGY: "t:s1"},
    }
    (patch,) = bind(clusters, annotations={"a": "b"}).patch
    assert patch["value"] == {"a": "b", slinky_labels.TOPOLOGY: "t:s1"}
    assert bind(clusters, annotations={slinky_labels.TOPOLOGY: "t:s1"}) == Answer()


def test_a_place_that_slurmctld_would_refuse_is_not_given(clusters: SlinkyClusters):
    put(clusters.caches.nodes, machine("t:s9"))
    assert bind(clusters) == Answer()
    put(clusters.caches.nodes, machine(""))
    assert bind(clusters) == Answer()


def test_the_binding_of_any_other_pod_goes_through_untouched(clusters: SlinkyClusters):
    put(clusters.caches.pods, worker("slurmctld"))
    assert bind(clusters) == Answer()
    assert bind(new_clusters()) == Answer()
