"""The demo of a SlurmCluster, alone and beside the other one."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest

from penstock.controllers.runtime.apis import NEBIUS, SLINKY
from penstock.local import demo, install, soperator
from penstock.local import demo_slurmcluster as slurmcluster
from penstock.local.errors import LocalError
from unit.local.remembering import IMAGES, Remembering

MANAGER = "deployment/soperator-manager"
OPERATOR = "deployment/penstock-operator"
BOTH = f"{SLINKY},{NEBIUS}"


class Beside(Remembering):
    """A cluster of the demo's own, and whether it was taken down."""

    is_down = False
    deployments: tuple[install.Document, ...] = ()

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        if arguments[:2] == ("get", "deployments"):
            self.live["deployments"] = {"items": list(self.deployments)}
            return super().kubectl("get", "deployments", "-o", "json")
        return super().kubectl(*arguments, stdin=stdin)

    def down(self) -> bool:
        self.is_down = True
        return True


def led(objects: list[install.Document]) -> str:
    """API groups that the last applied operator leads."""
    deployment = [one for one in objects if one["kind"] == "Deployment"][-1]
    variables = deployment["spec"]["template"]["spec"]["containers"][0]["env"]
    return next(one["value"] for one in variables if one["name"] == "PENSTOCK_APIS")


def asked(objects: list[install.Document]) -> set[str]:
    """API groups with rules in the webhooks."""
    hooks = [hook for one in objects for hook in one.get("webhooks", ())]
    return {group for hook in hooks for rule in hook["rules"] for group in rule["apiGroups"]}


def operator_of(namespace: str, name: str, apis: str, **labels: str) -> install.Document:
    env = [{"name": "PENSTOCK_APIS", "value": apis}]
    return {
        "metadata": {"namespace": namespace, "name": name, "labels": labels},
        "spec": {"template": {"spec": {"containers": [{"env": env}, {}]}}},
    }


def test_the_operator_of_controllers_leads_both_groups_alone_and_one_beside_the_other() -> None:
    alone = Remembering()
    install.install(alone, IMAGES)
    assert led(alone.applied) == BOTH
    assert NEBIUS in asked(alone.applied)
    beside = Remembering(MANAGER)
    install.install(beside, IMAGES)
    assert led(beside.applied) == SLINKY
    assert NEBIUS not in asked(beside.applied)
    assert SLINKY in asked(beside.applied)


def test_no_two_operators_lead_a_group_while_the_second_one_comes() -> None:
    target = Beside(OPERATOR)
    soperator.put(target, IMAGES)
    calls = [" ".join(call[:3]) for call in target.calls]
    given_up = calls.index(f"set env {OPERATOR}")
    assert target.calls[given_up][3] == f"PENSTOCK_APIS={SLINKY}"
    assert calls[given_up + 1] == f"rollout status {OPERATOR}"
    assert calls.index(f"rollout status {MANAGER}") > given_up
    assert led(target.applied) == NEBIUS
    names = {one["metadata"]["name"] for one in target.applied if one["kind"] == "Deployment"}
    assert names == {"soperator-manager"}


def test_a_demo_alone_changes_no_operator_that_is_not_there() -> None:
    target = Beside()
    soperator.put(target, IMAGES)
    assert not [call for call in target.calls if call[0] == "set"]


@pytest.mark.parametrize(
    "one",
    [
        operator_of("mine", "slurm-operator", BOTH),
        operator_of("soperator", "soperator-manager", "", **{soperator._MANAGED_BY: "Helm"}),
        operator_of("penstock-system", "x", NEBIUS, **{soperator._MANAGED_BY: "Helm"}),
    ],
    ids=lambda one: one["metadata"]["namespace"],
)
def test_an_operator_of_somebody_else_that_leads_the_group_stops_the_demo(one: Any) -> None:
    target = Beside()
    target.deployments = (one,)
    with pytest.raises(LocalError, match=f"namespace {one['metadata']['namespace']} leads"):
        soperator.put(target, IMAGES)
    assert target.applied == []


def test_an_operator_of_another_group_and_those_of_demos_are_no_obstacle() -> None:
    target = Beside()
    target.deployments = (
        operator_of("slinky", "slurm-operator", SLINKY),
        operator_of("penstock-system", "penstock-operator", BOTH),
        operator_of("soperator", "soperator-manager", NEBIUS),
    )
    soperator.put(target, IMAGES)
    assert target.applied


def test_down_beside_the_other_demo_keeps_the_node_and_gives_the_group_back() -> None:
    target = Beside(OPERATOR, "crd/slurmclusters.slurm.nebius.ai")
    slurmcluster.down(target)
    assert not target.is_down
    deleted = target.deleted()
    assert deleted[0].startswith("slurmcluster correct-cpu-cluster")
    assert all("-l penstock.dev/demo=slurmcluster" in one for one in deleted[1:])
    (call,) = (call for call in target.calls if call[0] == "set")
    assert call[3] == f"PENSTOCK_APIS={BOTH}"
    assert NEBIUS in asked(target.applied)


def test_down_alone_takes_the_demos_own_cluster_down() -> None:
    target = Beside()
    slurmcluster.down(target)
    assert target.is_down
    assert target.deleted() == []


def test_the_other_demos_end_leaves_the_kinds_and_objects_of_this_one() -> None:
    target = Remembering(MANAGER)
    demo.down(target)
    assert not any(one.startswith("crd") for one in target.deleted())
    assert all("-l penstock.dev/demo=true" in one for one in target.deleted())


def test_the_cluster_has_the_documented_name_port_and_filter() -> None:
    (cluster,) = (one for one in slurmcluster.objects() if one["kind"] == "SlurmCluster")
    assert cluster["metadata"]["name"] == "correct-cpu-cluster"
    assert cluster["spec"]["clusterType"] == "cpu"
    assert cluster["spec"]["slurmNodes"]["login"]["sshdServiceNodePort"] == 30022
    nodes = cluster["spec"]["slurmNodes"]
    assert {nodes[one]["k8sNodeFilterName"] for one in ("controller", "worker", "login")} == {"cpu"}


def test_images_of_a_registry_have_its_prefix() -> None:
    text = str(slurmcluster.objects("registry.example/team/penstock"))
    assert "localhost/penstock" not in text
    assert "registry.example/team/penstock/jail-slurmd:26.05" in text


def test_the_example_is_short_enough_to_read() -> None:
    text = (install.ROOT / slurmcluster.EXAMPLE).read_text()
    assert len(text.splitlines()) < 60


def test_the_scripts_have_the_documented_names_and_are_valid() -> None:
    scripts = slurmcluster.scripts()
    assert [one.name for one in scripts] == [
        "01-check-cluster.sh",
        "02-access-login.sh",
        "03-slurm-status-real.sh",
        "04-job-demo.sh",
        "05-final-status.sh",
    ]
    for script in (*scripts, scripts[0].with_name("common.sh")):
        subprocess.run(["bash", "-n", str(script)], check=True)
        assert script.name == "common.sh" or script.stat().st_mode & 0o111
