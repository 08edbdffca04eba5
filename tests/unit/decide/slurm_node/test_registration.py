"""Which workers are led to register again."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from penstock.api.kubernetes.kinds import Pod
from penstock.api.slinky.labels import POD_CORDON
from penstock.api.slinky.nodeset import UpdateStrategy
from penstock.decide.action import DeletePod, RegisterNode, RemoveStandIns
from penstock.decide.nodeset.plan import plan
from penstock.decide.observed.view import ControllerState
from penstock.decide.slurm_node.registration import STARTS_S, Registration, registration
from penstock.slurm.known import Known, Unknown
from penstock.slurm.state import Node
from support.nodesets import (
    NOW,
    UNKNOWN,
    job,
    known_nodes,
    node,
    nodeset,
    observed,
    pod,
    running,
    view,
    waiting,
)


def addressed(one: Pod, ip: str | None = "10.0.0.7") -> Pod:
    return msgspec.structs.replace(one, status=msgspec.structs.replace(one.status, pod_ip=ip))


def decided(*pods: Pod, nodes: Known[dict[str, Node]] | Unknown, **more: Any) -> Registration:
    wanted = more.pop("wanted", nodeset(len(pods)))
    seen = view(wanted, *pods, nodes=nodes, **more)
    return registration(seen, observed(seen))


def nodes_of(found: Registration) -> list[str]:
    return [one.node for one in found.actions if isinstance(one, RegisterNode)]


def test_a_worker_that_runs_and_that_slurm_does_not_know_registers_again() -> None:
    found = decided(addressed(pod(0)), addressed(pod(1)), nodes=known_nodes(node(1)))
    assert nodes_of(found) == ["compute-0"]


def test_nothing_is_done_on_what_is_not_known() -> None:
    assert decided(addressed(pod(0)), nodes=UNKNOWN) == Registration()
    assert decided(addressed(pod(0)), nodes=known_nodes(), jobs=UNKNOWN) == Registration()


def test_a_slurmd_has_its_time_to_register_by_itself() -> None:
    young = addressed(pod(0, slurmd=running(NOW - STARTS_S + 10)))
    found = decided(young, nodes=known_nodes())
    assert found.actions == ()
    assert found.requeue_after == pytest.approx(10.0)


@pytest.mark.parametrize(
    "one",
    [
        addressed(pod(0, deleted=True)),
        addressed(pod(0), None),
        addressed(pod(0, ready=False)),
        addressed(pod(0, ready=False, slurmd=waiting("CrashLoopBackOff", restarts=2))),
    ],
)
def test_a_slurmd_that_goes_or_cannot_answer_is_not_asked(one: Pod) -> None:
    assert decided(one, nodes=known_nodes()).actions == ()


def test_two_pods_of_one_slurm_node_do_not_take_turns() -> None:
    twins = [addressed(pod(0, host="same")), addressed(pod(1, host="same"))]
    assert decided(*twins, nodes=known_nodes()).actions == ()


def test_with_the_controller_gone_nothing_registers() -> None:
    found = decided(
        addressed(pod(0)),
        nodes=known_nodes(),
        wanted=nodeset(1, deleted=NOW - 5),
        controller=ControllerState.ABSENT,
    )
    assert found == Registration()


def test_a_port_of_its_own_is_the_one_that_is_asked() -> None:
    found = decided(
        addressed(pod(0)), nodes=known_nodes(), wanted=nodeset(1, extra_conf="Gres=gpu:1 Port=7000")
    )
    (one,) = found.actions
    assert isinstance(one, RegisterNode)
    assert one.port == 7000


def test_stand_ins_that_a_killed_process_left_are_removed() -> None:
    left = Node("penstock-register-0", frozenset({"DOWN", "DRAIN"}))
    found = decided(addressed(pod(0)), nodes=known_nodes(node(0), left))
    assert found.actions == (RemoveStandIns(("penstock-register-0",)),)


UNABLE = "slurmrestd has no POST new/node/ in v0.0.43"


def replaced(*pods: Pod, **more: Any) -> list[str]:
    budget = {"maxUnavailable": 1}
    strategy = {"type": more.pop("strategy", "RollingUpdate"), "rollingUpdate": budget}
    update = msgspec.convert(strategy, UpdateStrategy)
    wanted = more.pop("wanted", nodeset(len(pods), update_strategy=update))
    more.setdefault("cannot_register", UNABLE)
    found = plan(view(wanted, *pods, **more))
    return [one.name for one in found.actions if isinstance(one, DeletePod)]


def test_forgotten_workers_that_cannot_register_are_replaced_one_after_another() -> None:
    pods = [addressed(pod(n)) for n in range(3)]
    assert replaced(*pods, nodes=known_nodes()) == ["compute-0"]
    assert replaced(*pods, nodes=known_nodes(), cannot_register=None) == []
    away = addressed(pod(0, ready=False))
    assert replaced(away, *pods[1:], nodes=known_nodes()) == []


@pytest.mark.parametrize(
    "more",
    [
        {"nodes": UNKNOWN},
        {"nodes": known_nodes(), "jobs": UNKNOWN},
        {"nodes": known_nodes(), "jobs": (job(1, 0),)},
        {"nodes": known_nodes(node(0))},
        {"nodes": known_nodes(), "strategy": "OnDelete"},
        {"nodes": known_nodes(), "controller": ControllerState.ABSENT},
    ],
)
def test_a_forgotten_worker_stays_that_may_have_a_job_or_whose_user_replaces_it(
    more: dict[str, Any],
) -> None:
    assert replaced(addressed(pod(0)), **more) == []


def test_a_forgotten_worker_that_a_user_cordoned_stays() -> None:
    assert replaced(addressed(pod(0, annotations={POD_CORDON: "true"})), nodes=known_nodes()) == []
