"""Rules by API group: every kind has its own, and a new group changes nothing but the list."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
import pytest

import penstock
from penstock.api.admission import ApiGroup, KindRules, Problem, Reference, RelatedObjects
from penstock.api.cluster import marks
from penstock.api.kubernetes import schema
from penstock.api.kubernetes.kinds import Pod
from penstock.api.kubernetes.meta import Json, KubeObject, KubeStruct
from penstock.api.kubernetes.resource import ObjectKey, Resource
from penstock.api.nebius import labels as nebius_labels
from penstock.api.nebius.nodeset import NODE_SETS
from penstock.api.nebius.slurmcluster import SLURM_CLUSTERS
from penstock.api.penstock import restore
from penstock.api.registry import groups, groups_beside, registry, rules_of
from penstock.api.slinky import labels as slinky_labels
from penstock.api.slinky.controller import CONTROLLERS
from penstock.controllers.admission.handlers import DEFAULT, VALIDATE, Admission
from penstock.controllers.observed.slinky_clusters import SlinkyClusters
from penstock.kube.webhook.review import Answer, answer
from penstock.translate.slinky.worker_set import MARKS
from support import nebius
from unit.controllers.stage import new_clusters, put


class QuotaSpec(KubeStruct, frozen=True):
    cluster: Annotated[str, schema.about("Name of the cluster.")] = ""
    hours: Annotated[int | None, schema.about("Hours.")] = None


class Quota(KubeObject, frozen=True, kw_only=True):
    """The one kind of a group that nothing else names."""

    spec: QuotaSpec = QuotaSpec()


QUOTAS = Resource("tiny.example.org", "v1", "Quota", "quotas", Quota)


def too_many(obj: Quota) -> Iterator[Problem]:
    if (obj.spec.hours or 0) > 24:
        yield Problem("spec.hours", f"{obj.spec.hours} are more than 24: write fewer")


def same_cluster(obj: Quota, related: RelatedObjects) -> Iterator[Problem]:
    for other in related.of(Quota):
        yield Problem("spec.cluster", f"{other.metadata.name} has this cluster: choose another")


def cluster(obj: Quota) -> tuple[ObjectKey, ...]:
    return (CONTROLLERS.key(obj.metadata.namespace, obj.spec.cluster),)


def named(obj: Quota) -> Iterator[Reference]:
    yield Reference("spec.cluster", CONTROLLERS.kind, obj.spec.cluster, CONTROLLERS.group)


def hours(obj: Quota) -> Mapping[str, Any]:
    return {"cluster": "slurm"} if not obj.spec.cluster else {}


TINY = ApiGroup(
    "tiny.example.org",
    "v1",
    (
        KindRules(
            info=schema.KindInfo(QUOTAS, (), ()),
            problems=too_many,
            defaults=hours,
            references=named,
            uses=cluster,
            conflicts=same_cluster,
        ),
    ),
)


def quota(name: str = "a", **spec: Any) -> Json:
    return {"metadata": {"name": name, "namespace": "slurm"}, "spec": spec}


def ask(
    clusters: SlinkyClusters, path: str, resource: Resource[Any] = QUOTAS, **request: Any
) -> Answer:
    given: list[Answer] = []
    handler = Admission(clusters.caches.store.of, groups=(*groups(), TINY)).handlers[path]
    kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    whole = {"uid": "u", "operation": "CREATE", "namespace": "slurm", "kind": kind, **request}
    body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": whole}
    answer(json.dumps(body).encode(), lambda one: given.append(handler(one)) or given[0])
    return given[0]


def test_a_new_group_is_validated_by_the_same_driver():
    clusters = new_clusters()
    found = ask(clusters, VALIDATE, object=quota(cluster="slurm", hours=25))
    assert [(one.field, one.message) for one in found.causes] == [
        ("spec.hours", "25 are more than 24: write fewer")
    ]
    assert found.warnings == (
        "spec.cluster: there is no Controller slurm in this namespace yet; it is waited for",
    )
    put(clusters.caches.controllers, convert(CONTROLLERS, quota("slurm")))
    assert ask(clusters, VALIDATE, object=quota(cluster="slurm", hours=24)) == Answer()


def test_a_new_group_is_compared_with_the_objects_of_its_cluster():
    clusters = new_clusters()
    put(clusters.caches.controllers, convert(CONTROLLERS, quota("slurm")))
    put(clusters.caches.store.of(QUOTAS), convert(QUOTAS, quota("b", cluster="slurm")))
    found = ask(clusters, VALIDATE, object=quota(cluster="slurm"))
    assert [one.message for one in found.causes] == ["b has this cluster: choose another"]
    assert ask(clusters, VALIDATE, object=quota("b", cluster="slurm")) == Answer()


def test_a_new_group_is_given_defaults_by_the_same_driver():
    found = ask(new_clusters(), DEFAULT, object=quota(hours=1))
    assert found.patch == ({"op": "add", "path": "/spec/cluster", "value": "slurm"},)


def test_users_of_a_deleted_object_are_found_in_all_groups():
    clusters = new_clusters()
    put(clusters.caches.store.of(QUOTAS), convert(QUOTAS, quota("b", cluster="slurm")))
    gone = {"operation": "DELETE", "oldObject": quota("slurm")}
    (told,) = ask(clusters, VALIDATE, CONTROLLERS, **gone).warnings
    assert told.startswith("Quota b belong to this Controller")


def test_a_deleted_cluster_names_the_node_sets_that_stay_but_not_itself():
    clusters = new_clusters()
    cluster, nodes = nebius.manifest("slurmcluster-5.0-0"), nebius.manifest("nodesets-5.0-0")
    put(clusters.caches.store.of(SLURM_CLUSTERS), convert(SLURM_CLUSTERS, cluster))
    gone = {"operation": "DELETE", "oldObject": cluster}
    assert ask(clusters, VALIDATE, SLURM_CLUSTERS, **gone).warnings == ()
    put(clusters.caches.store.of(NODE_SETS), convert(NODE_SETS, nodes))
    (warning,) = ask(clusters, VALIDATE, SLURM_CLUSTERS, **gone).warnings
    assert warning.startswith("NodeSet worker-cpu belong to this SlurmCluster")


def test_a_process_that_leads_one_group_imports_no_kind_of_the_other():
    code = (
        "import sys, penstock.controllers.operator, penstock.controllers.registry.slinky\n"
        "from penstock.api.registry import groups_beside, rules_of\n"
        "from penstock.api.slinky.controller import Controller\n"
        "assert [one.name for one in groups_beside(['slinky.slurm.net'])] == "
        "['slinky.slurm.net', 'penstock.dev']\n"
        "rules_of(Controller())\n"
        "print([one for one in sys.modules if one.startswith('penstock.api.nebius.')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['penstock.api.nebius.labels']"


def test_groups_are_those_of_the_process_and_what_is_served_beside_them():
    names = {one.name for one in groups_beside(["slurm.nebius.ai"])}
    assert names == {"slurm.nebius.ai", "penstock.dev"}
    assert {one.name for one in groups()} == names | {"slinky.slurm.net"}


def test_an_object_of_no_group_has_no_rules():
    with pytest.raises(TypeError, match="not a kind of ours: Pod"):
        rules_of(Pod())
    assert registry().of_kind(QUOTAS.group, QUOTAS.kind) is None
    assert registry().of_kind("other.example.org", "Controller") is None


def test_a_group_has_kinds_of_its_own_only():
    with pytest.raises(ValueError, match="Quota is not a kind of other"):
        ApiGroup("other.example.org", "v1", TINY.rules)


def test_every_kind_with_columns_has_rules():
    """A kind that the API server serves and no group names would be stored unseen."""
    declared = {
        f"penstock.api.{path.parent.name}.{path.stem}"
        for path in (Path(penstock.__file__).parent / "api").glob("*/*.py")
        if "INFO" in _assigned(path)
    }
    assert declared == {info.type.__module__ for info in registry().kinds}


def test_every_finalizer_of_ours_stands_in_the_rules_of_a_kind():
    ours = {value for name, value in _constants().items() if name.endswith("_FINALIZER")}
    stand = [one for rules in registry().rules for one in rules.finalizers]
    assert set(stand) == ours
    assert len(stand) == len(ours)


def test_finalizers_are_written_by_their_constants():
    """So that the test above sees them all. That of reservations is a mark of the API."""
    written: set[str] = set()
    for path in Path(penstock.__file__).parent.rglob("*.py"):
        if "simulation" in path.parts:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "AddFinalizer":
                name = node.args[0]
                written.add(name.id if isinstance(name, ast.Name) else ast.unparse(name))
    assert written
    others = {one for one in written if not one.rpartition(".")[2].endswith("_FINALIZER")}
    assert others == {"case.finalizer"}
    assert MARKS.reservation_finalizer == slinky_labels.RESERVATION_FINALIZER


def convert(resource: Resource[Any], manifest: Json) -> KubeObject:
    return msgspec.convert(manifest, resource.type)


def _constants() -> dict[str, Any]:
    return {**vars(marks), **vars(slinky_labels), **vars(nebius_labels), **vars(restore)}


def _assigned(path: Path) -> set[str]:
    return {
        target.id
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
