"""Rights of slurmctld's program that powers ephemeral nodes up and down."""

from __future__ import annotations

from dataclasses import replace

from penstock.render.nebius.cluster import power_account, slurmctld
from penstock.render.nebius.inputs import ClusterInputs
from support.nebius_clusters import CURRENT, of_shape

ACCOUNT = "spec.slurmNodes.controller.serviceAccountName"
NAME = "soperator-slurm-controller"
TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount"


def own() -> ClusterInputs:
    return of_shape(CURRENT, {ACCOUNT: ""}).inputs


def without_ephemeral(inputs: ClusterInputs) -> ClusterInputs:
    kept = tuple(one for one in inputs.node_sets if not one.spec.ephemeral_nodes)
    return replace(inputs, node_sets=kept)


def test_only_the_container_of_slurmctld_has_the_token() -> None:
    spec = slurmctld.stateful_set(own())["spec"]["template"]["spec"]
    assert (spec["serviceAccountName"], spec["automountServiceAccountToken"]) == (NAME, False)
    having = [
        one["name"]
        for one in (*spec["initContainers"], *spec["containers"])
        if TOKEN in {mount["mountPath"] for mount in one.get("volumeMounts", ())}
    ]
    assert having == ["slurmctld"]


def test_the_rights_are_those_that_the_program_uses() -> None:
    account, role, binding = power_account.objects(own())
    assert {(rule["resources"][0], *rule["verbs"]) for rule in role["rules"]} == {
        ("nodesets", "get"),
        ("nodesetpowerstates", "get", "create", "update"),
    }
    assert {one["metadata"]["name"] for one in (account, role, binding)} == {NAME}
    assert binding["subjects"][0]["name"] == NAME


def test_a_cluster_without_ephemeral_nodes_has_neither_account_nor_token() -> None:
    inputs = without_ephemeral(own())
    assert power_account.objects(inputs) == []
    assert {name for _, name in power_account.removed(inputs)} == {NAME}
    spec = slurmctld.stateful_set(inputs)["spec"]["template"]["spec"]
    assert spec["automountServiceAccountToken"] is False
    assert "serviceAccountName" not in spec


def test_an_account_of_the_user_is_left_alone() -> None:
    inputs = of_shape(CURRENT, {ACCOUNT: "mine"}).inputs
    assert power_account.objects(inputs) == []
    spec = slurmctld.stateful_set(inputs)["spec"]["template"]["spec"]
    assert spec["serviceAccountName"] == "mine"
    assert "automountServiceAccountToken" not in spec
