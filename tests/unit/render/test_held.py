"""Pods of slurm-operator serve what is declared, unless it changed; what empty fields mean."""

from __future__ import annotations

import base64
import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec
import pytest

from penstock.api.cluster.marks import ADOPTED_TEMPLATE
from penstock.api.kubernetes.meta import Json
from penstock.api.slinky.accounting import Accounting
from penstock.api.slinky.controller import Controller
from penstock.api.slinky.loginset import LoginSet
from penstock.api.slinky.nodeset import NodeSet
from penstock.api.slinky.restapi import RestApi
from penstock.render.parts import kept_template
from penstock.render.parts.default_images import Images
from penstock.render.parts.digest import secret_digest
from penstock.render.parts.kept_template import REPLACED, REPLACING
from penstock.render.slinky.accounting import slurmdbd as accounting
from penstock.render.slinky.accounting.slurmdbd import SlurmdbdInputs
from penstock.render.slinky.accounting.slurmdbd_conf import slurmdbd_conf
from penstock.render.slinky.cluster import adopted_workload as held
from penstock.render.slinky.cluster import login as loginset
from penstock.render.slinky.cluster import slurmctld as controller
from penstock.render.slinky.cluster import slurmrestd as restapi
from penstock.render.slinky.cluster.adopted_workload import WorkloadSpec
from penstock.render.slinky.config.slurm_conf import slurm_conf
from penstock.render.slinky.inputs import ClusterInputs
from penstock.render.slinky.nodeset import revision_meaning as meaning
from penstock.render.slinky.nodeset import worker_pod as worker
from penstock.simulation.slurm_operator import Upstream, chart_made

T = TypeVar("T")
WORKLOADS = ("slurm-controller", "slurm-accounting", "slurm-restapi", "slurm-login-slinky")
Change = Callable[[dict[str, Json]], None]


@dataclass
class Side:
    """What both operators make of the same objects; by name, the workloads."""

    theirs: dict[str, Json]
    ours: dict[str, Json]
    declared: dict[str, WorkloadSpec]
    upstream: Upstream
    cluster: ClusterInputs
    conf: str


def objects() -> list[Json]:
    """The fixture as the API server has it."""
    found = chart_made("slurm")
    for number, one in enumerate(found):
        one["metadata"] |= {"uid": f"uid-{number}", "generation": 1}
    return found


def side(change: Change = lambda _: None) -> Side:
    """slurm-operator saw the fixture, and Penstock sees it after a `change`, by kind."""
    upstream = Upstream(objects())
    now = objects()
    change({one["kind"]: one for one in now})
    by = {(one["kind"], one["metadata"]["name"]): one for one in now}

    def read(kind: type[T]) -> T:
        return msgspec.convert(next(o for o in now if o["kind"] == kind.__name__), kind)

    def hashed(name: str) -> str:
        return secret_digest(by["Secret", name]["data"])

    books = read(Accounting)
    cluster = ClusterInputs(
        read(Controller),
        Images("a", "b", "c", "d", "e"),
        nodesets=(read(NodeSet),),
        accounting=books,
        config_maps={"slurm-config-extra": by["ConfigMap", "slurm-config-extra"]["data"]},
        slurm_key_hash=hashed("slurm-auth-slurm"),
        clients_key_hash=hashed("slurm-auth-slurm"),
        jwt_key_hash=hashed("slurm-auth-jwt"),
    )
    rest, login = read(RestApi), read(LoginSet)
    conf = slurmdbd_conf(books, "secret")
    given = SlurmdbdInputs("d", conf, b"key", cluster.slurm_key_hash, cluster.jwt_key_hash)
    theirs = {one["metadata"]["name"]: one for one in upstream.made() if _is_workload(one)}
    keys = next(o for o in upstream.made() if o["metadata"]["name"].endswith("ssh-host-keys"))
    hashes = {
        "host_keys_hash": secret_digest(keys["data"]),
        "sssd_conf_hash": hashed("slurm-sssd-conf"),
    }
    made = [
        *controller.objects(cluster),
        *accounting.objects(books, given),
        *restapi.objects(cluster, rest),
        *loginset.objects(cluster, login, **hashes),
    ]
    return Side(
        theirs,
        {one["metadata"]["name"]: one for one in made if _is_workload(one)},
        {
            "slurm-controller": controller.declared_pods(cluster),
            "slurm-accounting": accounting.declared(books, given),
            "slurm-restapi": restapi.declared(cluster, rest),
            "slurm-login-slinky": loginset.declared(cluster, login, **hashes),
        },
        upstream,
        cluster,
        conf,
    )


def _is_workload(one: Json) -> bool:
    return one["kind"] in ("StatefulSet", "Deployment")


def served(found: Side) -> list[str]:
    """Workloads of which slurm-operator's pods will do."""
    return [name for name in WORKLOADS if held.satisfies(found.declared[name], found.theirs[name])]


def test_pods_of_the_same_declaration_will_do() -> None:
    found = side()
    assert sorted(found.theirs) == sorted(found.ours)
    assert served(found) == list(WORKLOADS)


def test_the_files_that_both_write_are_the_same_byte_for_byte() -> None:
    found = side()
    assert slurm_conf(found.cluster) == found.upstream.slurm_conf()
    books = [one for one in found.upstream.made() if one["metadata"]["name"] == "slurm-accounting"]
    (secret,) = [one for one in books if one["kind"] == "Secret"]
    conf = base64.b64decode(secret["data"]["slurmdbd.conf"]).decode()
    assert conf == found.conf
    given = SlurmdbdInputs("d", found.conf, b"", "", "")
    assert accounting.fits(given, f"{conf}# a remark\n")
    assert not accounting.fits(given, "StoragePass=other\n")


@pytest.mark.parametrize(
    ("kind", "path", "value", "gone"),
    [
        ("Controller", "slurmctld.image", "registry.example.com/slurmctld:26.11", 0),
        ("Controller", "template.spec.nodeSelector.pool", "slurm", 0),
        ("Controller", "template.metadata.annotations", {"team": "a"}, 0),
        ("Controller", "configFileRefs", [{"name": "slurm-config-extra"}, {"name": "more"}], 0),
        ("Accounting", "slurmdbd.args", ["-vv"], 1),
        ("RestApi", "slurmrestd.env", [{"name": "DEBUG", "value": "1"}], 2),
        ("LoginSet", "login.resources.limits", {"memory": "1Gi"}, 3),
        ("LoginSet", "sssdConfRef.name", "mariadb-password", 3),
    ],
)
def test_what_was_declared_since_is_missed(kind: str, path: str, value: Any, gone: int) -> None:
    def change(by: dict[str, Json]) -> None:
        _set(by[kind]["spec"], path.split("."), value)

    assert served(side(change)) == [n for i, n in enumerate(WORKLOADS) if i != gone]


def test_only_resources_are_compared_as_quantities() -> None:
    """A label, or a variable, that reads like a number is a text."""

    def wish(value: str) -> Change:
        def change(by: dict[str, Json]) -> None:
            spec = by["LoginSet"]["spec"]
            spec["template"].setdefault("metadata", {})["labels"] = {"tier": value}
            spec["login"]["resources"] = {"limits": {"cpu": value}}

        return change

    one, other = side(wish("1000")), side(wish("1e3"))
    name = "slurm-login-slinky"
    mixed = copy.deepcopy(one.ours[name])
    labels = mixed["spec"]["template"]["metadata"]["labels"]
    assert not held.satisfies(other.declared[name], mixed)
    labels["tier"] = "1e3"
    assert held.satisfies(other.declared[name], mixed)


def test_another_key_is_missed_by_those_that_read_it_at_their_start() -> None:
    found = side()
    for name in ("slurm-controller", "slurm-accounting"):
        hashes = found.theirs[name]["spec"]["template"]["metadata"]["annotations"]
        hashes["slinky.slurm.net/jwt-key-hash"] = "another"
    assert served(found) == ["slurm-restapi", "slurm-login-slinky"]


def test_a_note_changes_with_what_is_declared_and_with_nothing_else() -> None:
    before, after = side(), side(_chart_of_ours)
    for name in WORKLOADS:
        noted = held.spec_hash(before.declared[name])
        assert noted.startswith("v2:")
        assert held.spec_hash(after.declared[name]) == noted

    def change(by: dict[str, Json]) -> None:
        del by["RestApi"]["spec"]["template"]["spec"]["nodeSelector"]

    removed = side(change)
    name = "slurm-restapi"
    assert held.satisfies(removed.declared[name], removed.theirs[name])
    assert held.spec_hash(removed.declared[name]) != held.spec_hash(before.declared[name])


@pytest.mark.parametrize(
    ("kind", "path", "value"),
    [
        ("RestApi", "template.spec.hostNetwork", False),
        ("LoginSet", "login.securityContext.privileged", False),
        ("Controller", "template.spec.terminationGracePeriodSeconds", 0),
        ("Accounting", "template.spec.tolerations", [dict[str, str]()]),
        ("RestApi", "template.spec.dNSPolicy", "Default"),
    ],
)
def test_what_the_comparison_takes_for_absent_changes_no_note(
    kind: str, path: str, value: Any
) -> None:
    def change(by: dict[str, Json]) -> None:
        _set(by[kind]["spec"], path.split("."), value)

    before, after = side(), side(change)
    for name in WORKLOADS:
        assert held.spec_hash(after.declared[name]) == held.spec_hash(before.declared[name])


def test_a_node_selector_without_a_value_changes_the_note_only() -> None:
    def change(by: dict[str, Json]) -> None:
        by["RestApi"]["spec"]["template"]["spec"]["nodeSelector"] = {
            "kubernetes.io/os": "linux",
            "node-role.kubernetes.io/worker": "",
        }

    found, name = side(change), "slurm-restapi"
    assert name in served(found)
    assert held.spec_hash(found.declared[name]) != held.spec_hash(side().declared[name])


def test_a_note_of_an_earlier_version_is_known_as_one() -> None:
    assert held.is_older("0" * 64)
    assert not any(map(held.is_older, (REPLACED, REPLACING, "v2:" + "0" * 64)))


def test_what_is_written_leaves_the_template_and_what_cannot_change() -> None:
    found = side()
    ours, theirs = found.ours["slurm-controller"], found.theirs["slurm-controller"]
    theirs["spec"]["volumeClaimTemplates"][0]["status"] = {"phase": "Pending"}
    kept = kept_template.without_template(ours, "noted")
    assert kept["metadata"]["annotations"][ADOPTED_TEMPLATE] == "noted"
    assert kept["spec"].keys() == {"replicas", "revisionHistoryLimit", "selector"}
    later = kept_template.with_template(ours, theirs)
    assert later["metadata"]["annotations"][ADOPTED_TEMPLATE] == REPLACED
    assert later["spec"]["template"] == ours["spec"]["template"]
    assert later["spec"]["volumeClaimTemplates"] == theirs["spec"]["volumeClaimTemplates"]


@pytest.mark.parametrize("policy", ["OrderedReady", "Parallel"])
def test_a_statefulset_of_ours_keeps_the_policy_that_it_was_created_with(policy: str) -> None:
    found = side()
    ours = found.ours["slurm-controller"]
    assert ours["spec"]["podManagementPolicy"] == "Parallel"
    live: Json = {**ours, "spec": {**ours["spec"], "podManagementPolicy": policy}}
    assert kept_template.in_live_spelling(ours, live)["spec"]["podManagementPolicy"] == policy


def test_a_revision_of_slurm_operator_means_the_same_pod() -> None:
    found = side()
    (nodeset,) = found.cluster.nodesets
    (theirs,) = [o for o in found.upstream.made() if o["kind"] == "ControllerRevision"]
    ours = worker.revision(nodeset).data
    assert theirs["data"] != ours
    assert meaning.normalized_pod(nodeset, theirs["data"]) == meaning.normalized_pod(nodeset, ours)


@pytest.mark.parametrize(
    ("path", "value", "same"),
    [
        ("slurmd.env", [], True),
        ("slurmd.resources.limits.cpu", "500m", True),
        ("template.spec.tolerations", None, True),
        ("template.metadata.labels.team", "a", False),
        ("template.spec.hostNetwork", True, False),
        ("slurmd.securityContext", {"privileged": False}, False),
        ("slurmd.resources.limits.cpu", 2, False),
        ("ordinalPadding", 3, False),
        ("oversubscribeNode", False, False),
    ],
)
def test_revisions_mean_the_same_if_their_pods_do(path: str, value: Any, same: bool) -> None:
    (nodeset,) = side().cluster.nodesets
    one = worker.revision(nodeset).data
    other = copy.deepcopy(one)
    _set(other["spec"], path.split("."), value)
    assert (meaning.normalized_pod(nodeset, one) == meaning.normalized_pod(nodeset, other)) is same


def test_an_empty_selector_is_not_an_absent_one() -> None:
    assert meaning.normalize({"namespaceSelector": {}, "nodeSelector": {}}) == {
        "namespaceSelector": {}
    }


def test_data_of_something_else_mean_themselves() -> None:
    (nodeset,) = side().cluster.nodesets
    for data in ({}, {"spec": {"template": 5}}, {"spec": {"slurmd": {"env": 3}}}):
        found = meaning.normalized_pod(nodeset, data)
        assert found != meaning.normalized_pod(nodeset, worker.revision(nodeset).data)


def _chart_of_ours(by: dict[str, Json]) -> None:
    """The same values in Penstock's chart: no versions in labels, nothing that says nothing."""
    for one in by.values():
        if "spec" not in one:
            continue
        one["spec"] = _without_empty(one["spec"])
        template = one["spec"].get("template")
        if template:
            for key in ("helm.sh/chart", "app.kubernetes.io/version"):
                del template["metadata"]["labels"][key]


def _without_empty(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    found: Json = {key: _without_empty(one) for key, one in value.items()}  # pyright: ignore
    return {key: one for key, one in found.items() if one not in ({}, [], "", None)}


def _set(fields: Json, path: list[str], value: Any) -> None:
    for step in path[:-1]:
        fields = fields.setdefault(step, {})
    fields[path[-1]] = value
