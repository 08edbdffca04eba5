"""DaemonSet mode: a pod on each machine that fits, and what becomes of it when the machine changes.

Feature rows 23, 33, 36, 37, 38, 45, 46; D8 and D9 where they concern this mode; F08.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from msgspec.structs import replace as changed

from penstock.api.cluster.marks import CORDONED_FOR
from penstock.api.kubernetes.kinds import Node, NodeSpec, Taint
from penstock.api.kubernetes.meta import ObjectMeta
from penstock.api.kubernetes.spec_parts import PodTemplate
from penstock.api.slinky.labels import HOSTNAME_OVERRIDE, POD_CORDON
from penstock.api.slinky.names import node_pod_name, ordinal_of
from penstock.api.slinky.nodeset import UpdateStrategy
from penstock.decide.action import (
    CreatePod,
    DeleteNodeRecord,
    DeletePod,
    DeletionGround,
    DrainNode,
    PatchPod,
    SetPodConditions,
    UndrainNode,
)
from penstock.decide.nodeset.plan import Plan, plan
from penstock.decide.observed import node_comment
from penstock.decide.observed.view import WorkerSetView
from penstock.decide.placement.daemonset import placements
from penstock.slurm import state as model
from penstock.translate.slinky.worker_set import MARKS, worker_set
from support.nodesets import NOW, known_nodes, nodeset, pod, view

OURS = "slurm-operator: Pod (slurm/x) is pending termination for scale-in"
ANY: dict[str, Any] = {}
MARK = {POD_CORDON: "true", CORDONED_FOR: "scale-in since 2026-01-01T00:00:00Z"}


def machine(name: str, *taints: str, labels: dict[str, str] | None = None, **notes: str) -> Node:
    override = {HOSTNAME_OVERRIDE: notes["host"]} if "host" in notes else {}
    found = tuple(Taint(key=key, effect=effect) for key, effect in map(_taint, taints))
    meta = ObjectMeta(name=name, labels=labels or {}, annotations=override)
    return Node(metadata=meta, spec=NodeSpec(taints=found))


def _taint(text: str) -> tuple[str, str]:
    key, _, effect = text.partition(":")
    return key, effect


def daemons(**spec: Any) -> Any:
    return nodeset(scaling_mode="DaemonSet", **spec)


def seen(*pods: Any, machines: tuple[Node, ...], of: Any = None, **more: Any) -> WorkerSetView:
    names = {one.metadata.name: one for one in machines}
    return view(of or daemons(), *pods, kubernetes_nodes=names, **more)


def only(found: Plan, kind: Any) -> list[Any]:
    return [one for one in found.actions if isinstance(one, kind)]


def idle(*names: str, **more: Any) -> list[model.Node]:
    return [model.Node(name, frozenset({"IDLE"}), **more) for name in names]


def comment(machine: str, of: str = "") -> str:
    made = of or node_pod_name(daemons(), machine)
    return node_comment.NodeComment("slurm", made, machine, "compute", "nodeset-uid").text(
        MARKS.comment
    )


def asks(key: str, operator: str, *values: str) -> dict[str, Any]:
    """One term of an affinity."""
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


class TestWhereTheyAre:
    def test_each_machine_gets_one_pod_called_as_itself(self) -> None:
        found = plan(seen(machines=(machine("a.example.org"), machine("b"))))
        made = [one.slot for one in only(found, CreatePod)]
        assert [(one.slurm_node, one.node) for one in made] == [("a", "a.example.org"), ("b", "b")]
        assert all(one.ordinal is None for one in made)
        assert found.status.desired == 2

    def test_the_pod_of_a_machine_always_has_the_same_name_and_no_ordinal(self) -> None:
        names = {node_pod_name(daemons(), f"machine-{number}") for number in range(5000)}
        assert len(names) == 5000
        assert {ordinal_of(daemons(), name) for name in names} == {None}

    def test_the_number_of_replicas_means_nothing(self) -> None:
        found = plan(seen(machines=(machine("a"), machine("b")), of=daemons(replicas=7)))
        assert len(only(found, CreatePod)) == found.status.desired == 2

    @pytest.mark.parametrize(
        ("labels", "fits"),
        [({"slurm": "worker"}, True), ({"slurm": "login"}, False), ({}, False)],
    )
    def test_the_node_selector_says_which_machines_fit(
        self, labels: dict[str, str], fits: bool
    ) -> None:
        wanted = daemons(template=PodTemplate(spec={"nodeSelector": {"slurm": "worker"}}))
        found = plan(seen(machines=(machine("a", labels=labels),), of=wanted))
        assert bool(only(found, CreatePod)) is fits

    @pytest.mark.parametrize(
        ("terms", "fits"),
        [
            ([asks("zone", "In", "a", "b")], True),
            ([asks("zone", "NotIn", "a")], False),
            ([asks("zone", "Exists")], True),
            ([asks("zone", "DoesNotExist")], False),
            ([asks("cores", "Gt", "32")], True),
            ([asks("cores", "Lt", "32")], False),
            ([asks("zone", "Gt", "32")], False),
            ([{"matchFields": asks("metadata.name", "In", "m")["matchExpressions"]}], True),
            ([{"matchFields": asks("metadata.name", "In", "n")["matchExpressions"]}], False),
            ([ANY], False),
            ([ANY, asks("zone", "Exists")], True),
        ],
    )
    def test_so_does_required_affinity(self, terms: list[dict[str, Any]], fits: bool) -> None:
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        wanted = daemons(template=PodTemplate(spec={"affinity": {"nodeAffinity": required}}))
        labels = {"cores": "64", "zone": "a"}
        found = plan(seen(machines=(machine("m", labels=labels),), of=wanted))
        assert bool(only(found, CreatePod)) is fits

    @pytest.mark.parametrize(
        ("taint", "tolerated", "fits"),
        [
            ("dedicated:NoSchedule", [], False),
            ("dedicated:PreferNoSchedule", [], True),
            ("dedicated:NoSchedule", [{"key": "dedicated", "operator": "Exists"}], True),
            ("dedicated:NoSchedule", [{"operator": "Exists"}], True),
            ("dedicated:NoSchedule", [{"key": "dedicated", "effect": "NoExecute"}], False),
            ("dedicated:NoSchedule", [{"key": "dedicated", "value": "gpu"}], False),
            ("nodeset.slinky.slurm.net/worker:NoExecute", [], True),
            ("node.kubernetes.io/unschedulable:NoSchedule", [], True),
            ("node.kubernetes.io/not-ready:NoExecute", [], True),
            ("node.kubernetes.io/network-unavailable:NoSchedule", [], False),
        ],
    )
    def test_taints_keep_pods_away_unless_they_are_tolerated(
        self, taint: str, tolerated: list[dict[str, str]], fits: bool
    ) -> None:
        """Feature row 23: the usual tolerations of daemons (so#259)."""
        wanted = daemons(template=PodTemplate(spec={"tolerations": tolerated}))
        found = plan(seen(machines=(machine("a", taint),), of=wanted))
        assert bool(only(found, CreatePod)) is fits

    def test_a_fitting_machine_of_none_is_no_fault(self) -> None:
        found = plan(seen(machines=(machine("a", "x:NoSchedule"),)))
        assert [one.reason for one in found.findings] == ["PodsReady", "NoNodeFits"]
        assert found.findings[0].ok is True


class TestNames:
    def test_a_machine_may_say_what_its_node_is_called(self) -> None:
        """Feature row 45."""
        found = plan(seen(machines=(machine("a.example.org", host="node07"),)))
        assert only(found, CreatePod)[0].slot.slurm_node == "node07"

    def test_in_the_hosts_network_it_cannot(self) -> None:
        wanted = daemons(template=PodTemplate(spec={"hostNetwork": True}))
        found = plan(seen(machines=(machine("a", host="node07"),), of=wanted))
        assert only(found, CreatePod)[0].slot.slurm_node == "a"

    def test_a_name_that_is_none_is_told_and_holds_up_nobody_else(self) -> None:
        found = plan(seen(machines=(machine("a", host="no name"), machine("b"))))
        assert [one.slot.node for one in only(found, CreatePod)] == ["b"]
        assert any(one.reason == "HostnameInvalid" and one.ok is False for one in found.findings)

    def test_of_two_machines_of_one_name_the_one_that_has_it_keeps_it(self) -> None:
        machines = (machine("x.example.org"), machine("x.example.com"))
        both = placements(worker_set(daemons()), machines, ())
        assert [slot.node for slot in both.slots] == ["x.example.com"]
        having = pod(machine="x.example.org", host="x")
        kept = placements(worker_set(daemons()), machines, (having,))
        assert [slot.node for slot in kept.slots] == ["x.example.org"]
        assert list(kept.problems) == ["x.example.com"]

    def test_its_name_is_kept_for_a_machine_whose_pod_is_made_anew(self) -> None:
        """Found by a fault plan: the other machine's worker was taken for it in the meantime."""
        machines = (machine("x.example.org"), machine("x.example.com"))
        having = {"x": model.Node("x", frozenset({"DOWN"}), comment=comment("x.example.org"))}
        found = placements(worker_set(daemons()), machines, (), having)
        assert [slot.node for slot in found.slots] == ["x.example.org"]
        someone = {"x": model.Node("x", frozenset({"DOWN"}), comment="by hand")}
        found = placements(worker_set(daemons()), machines, (), someone)
        assert [slot.node for slot in found.slots] == ["x.example.com"]

    def test_a_free_name_goes_to_the_machine_without_a_worker(self) -> None:
        """Found by a fault plan: one that worked was taken, and the other one stayed without."""
        machines = (machine("a", host="x"), machine("b", host="x"))
        found = plan(seen(pod(machine="a"), machines=machines))
        assert [(one.slot.node, one.slot.slurm_node) for one in only(found, CreatePod)] == [
            ("b", "x")
        ]
        assert only(found, PatchPod) == []
        assert found.status.desired == 2

    def test_a_machine_waits_until_its_new_name_is_free(self) -> None:
        """Its worker would be out, the budget used up, and nobody else could give up a name."""
        machines = (machine("a", host="b"), machine("b", host="c"))
        both = pod(machine="a"), pod(machine="b")
        found = plan(seen(*both, machines=machines, nodes=known_nodes(*idle("a", "b"))))
        marked = [one.name for one in only(found, PatchPod) if POD_CORDON in one.annotations]
        assert marked == [both[1].metadata.name]
        nodes = known_nodes(*idle("a", "c"))
        later = seen(both[0], pod(machine="b", host="c"), machines=machines, nodes=nodes)
        marked = [one.name for one in only(plan(later), PatchPod) if POD_CORDON in one.annotations]
        assert marked == [both[0].metadata.name]

    def test_two_machines_that_would_change_names_stay_as_they_are(self) -> None:
        machines = (machine("a", host="b"), machine("b", host="a"))
        found = plan(seen(pod(machine="a"), pod(machine="b"), machines=machines))
        assert only(found, PatchPod) == only(found, CreatePod) == []
        (told,) = (one for one in found.findings if one.reason == "HostnameInvalid")
        assert "a: 'b' is what the node of b is called" in told.message

    def test_a_changed_name_is_taken_over_in_the_budget_with_any_strategy(self) -> None:
        for strategy in ("RollingUpdate", "OnDelete"):
            machines = tuple(machine(f"m{number}", host=f"node{number}") for number in range(4))
            pods = [pod(machine=f"m{number}") for number in range(4)]
            wanted = daemons(update_strategy=UpdateStrategy(type=strategy))
            found = plan(seen(*pods, machines=machines, of=wanted))
            marked = [one for one in only(found, PatchPod) if POD_CORDON in one.annotations]
            assert len(marked) == 1
            assert found.status.updated_replicas == 0


class TestMachinesThatChange:
    def test_a_pod_stays_on_a_machine_that_takes_no_more_of_them(self) -> None:
        one = pod(machine="a")
        found = plan(seen(one, machines=(machine("a", "x:NoSchedule"),)))
        assert only(found, DeletePod) == only(found, PatchPod) == []
        assert found.status.desired == 1

    @pytest.mark.parametrize("change", ["label", "taint", "gone"])
    def test_a_pod_whose_machine_fits_no_more_is_drained_first(self, change: str) -> None:
        wanted = daemons(template=PodTemplate(spec={"nodeSelector": {"slurm": "worker"}}))
        labels = {"slurm": "worker"}
        machines = {
            "label": (machine("a"),),
            "taint": (machine("a", "x:NoExecute", labels=labels),),
            "gone": (),
        }[change]
        one = pod(machine="a")
        first = plan(seen(one, machines=machines, of=wanted))
        assert only(first, DeletePod) == []
        assert only(first, PatchPod)[0].annotations[POD_CORDON] == "true"
        marked = pod(machine="a", annotations=MARK)
        second = plan(seen(marked, machines=machines, of=wanted))
        assert [step.node for step in only(second, DrainNode)] == ["a"]
        drained = known_nodes(model.Node("a", frozenset({"IDLE", "DRAIN"}), OURS))
        third = plan(seen(marked, machines=machines, of=wanted, nodes=drained))
        assert [step.guard for step in only(third, DeletePod)] == [DeletionGround.DRAINED]

    def test_a_pod_whose_machine_fits_again_is_given_jobs_again(self) -> None:
        drained = known_nodes(
            model.Node("a", frozenset({"IDLE", "DRAIN"}), OURS, slurmd_start_time=int(NOW))
        )
        marked = pod(machine="a", annotations=MARK)
        first = plan(seen(marked, machines=(machine("a"),), nodes=drained))
        assert only(first, PatchPod)[0].annotations[POD_CORDON] is None
        free = pod(machine="a", annotations={CORDONED_FOR: "nobody"})
        second = plan(seen(free, machines=(machine("a"),), nodes=drained))
        assert [step.node for step in only(second, UndrainNode)] == ["a"]

    def test_a_cordoned_machine_keeps_its_pod_and_gets_it_back(self) -> None:
        """Feature row 33, so#259: a machine that is cordoned is still one of the NodeSet's."""
        cordoned = changed(
            machine("a", "node.kubernetes.io/unschedulable:NoSchedule"),
            spec=NodeSpec(
                unschedulable=True,
                taints=(Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule"),),
            ),
        )
        there = plan(seen(pod(machine="a"), machines=(cordoned,)))
        assert only(there, PatchPod)[0].annotations[CORDONED_FOR].startswith("node-cordon")
        assert only(there, DeletePod) == []
        assert len(only(plan(seen(machines=(cordoned,))), CreatePod)) == 1

    def test_no_second_pod_comes_while_the_first_is_on_its_way_out(self) -> None:
        going = pod(machine="a", deleted=True)
        assert only(plan(seen(going, machines=(machine("a"),))), CreatePod) == []
        renamed = pod(machine="a", host="node07", deleted=True)
        other = (machine("a"), machine("b", host="node07"))
        assert only(plan(seen(renamed, machines=other)), CreatePod) == []

    def test_of_two_pods_of_a_machine_the_one_that_runs_stays(self) -> None:
        """As slurm-operator may leave them: random names, and one that waits for the first."""
        waits = pod(machine="a", name="compute-x7x7x", bound=False, phase="Pending", ready=False,
                    created=NOW - 7200)  # fmt: skip
        runs = pod(machine="a", name="compute-b2b2b")
        found = plan(seen(waits, runs, machines=(machine("a"),), nodes=known_nodes(*idle("a"))))
        assert [step.name for step in only(found, DeletePod)] == ["compute-x7x7x"]
        assert only(found, CreatePod) == []

    def test_a_pod_that_slurm_operator_made_stays_in_its_place(self) -> None:
        theirs = pod(machine="a", name="compute-x7x7x")
        found = plan(seen(theirs, machines=(machine("a"),)))
        assert only(found, CreatePod) == only(found, DeletePod) == []


class TestUpdates:
    def old(self, count: int) -> list[Any]:
        labels = {"controller.kubernetes.io/hash": "old"}
        return [pod(machine=f"m{number}", labels=labels) for number in range(count)]

    def test_no_more_go_than_a_quarter_of_the_machines(self) -> None:
        """Feature row 37 in this mode: the percentage is of the machines, not of `replicas`."""
        machines = tuple(machine(f"m{number}") for number in range(8))
        found = plan(seen(*self.old(8), machines=machines))
        assert len([p for p in only(found, PatchPod) if POD_CORDON in p.annotations]) == 2

    def test_the_worker_of_a_machine_that_takes_no_new_one_stays(self) -> None:
        """Found by plan 12047: the machine was lost, and another one taken on top of it."""
        machines = (machine("m0", "x:NoSchedule"), machine("m1"))
        one, other = self.old(2)
        found = plan(seen(one, other, machines=machines, nodes=known_nodes(*idle("m0", "m1"))))
        assert [p.name for p in only(found, PatchPod)] == [other.metadata.name]
        alone = plan(seen(one, machines=machines[:1], nodes=known_nodes(*idle("m0"))))
        assert only(alone, PatchPod) == only(alone, DrainNode) == only(alone, DeletePod) == []
        (told,) = (one for one in alone.findings if one.reason == "RollingUpdate")
        assert f"{one.metadata.name} stays, as m0 takes no new pod" in told.message

    def test_so_does_the_worker_of_a_machine_whose_name_another_one_has(self) -> None:
        """Without a worker it would have no name left."""
        machines = (machine("m0", host="m1"), machine("m1"))
        found = plan(seen(*self.old(2), machines=machines))
        (name,) = (p.name for p in only(found, PatchPod) if POD_CORDON in p.annotations)
        assert name == node_pod_name(daemons(), "m1")

    def test_one_that_was_taken_is_given_back_when_its_machine_takes_no_new_one(self) -> None:
        mark = {POD_CORDON: "true", CORDONED_FOR: "update since 2026-01-01T00:00:00Z"}
        labels = {"controller.kubernetes.io/hash": "old"}
        marked = pod(machine="m0", labels=labels, annotations=mark)
        drained = model.Node("m0", frozenset({"IDLE", "DRAIN"}), OURS)
        machines = (machine("m0", "x:NoSchedule"), machine("m1"))
        nodes = known_nodes(drained, *idle("m1"))
        found = plan(seen(marked, self.old(2)[1], machines=machines, nodes=nodes))
        assert only(found, DeletePod) == []
        # It is out until then, and nobody else goes.
        assert [(p.name, p.annotations[POD_CORDON]) for p in only(found, PatchPod)] == [
            (marked.metadata.name, None)
        ]

    def test_with_on_delete_none_goes(self) -> None:
        """Feature row 38."""
        wanted = daemons(update_strategy=UpdateStrategy(type="OnDelete"))
        found = plan(seen(*self.old(2), machines=(machine("m0"), machine("m1")), of=wanted))
        assert not [p for p in only(found, PatchPod) if POD_CORDON in p.annotations]

    def test_the_record_goes_before_a_pod_of_another_template_comes(self) -> None:
        """D42 in this mode."""
        written = replace(
            node_comment.NodeComment(
                "slurm", node_pod_name(daemons(), "m0"), "m0", "compute", "nodeset-uid"
            ),
            renew=True,
        )
        node = model.Node("m0", frozenset({"DOWN"}), "slurm-operator: Pod is terminating",
                          comment=written.text(MARKS.comment))  # fmt: skip
        found = plan(seen(machines=(machine("m0"),), nodes=known_nodes(node)))
        kinds = [type(one) for one in found.actions]
        assert kinds == [DeleteNodeRecord, CreatePod]


class TestModeSwitch:
    def test_pods_with_ordinals_stay_until_daemons_are_in_use(self) -> None:
        machines = tuple(machine(f"machine-{number}") for number in range(8))
        old = [pod(number) for number in range(4)]
        first = plan(seen(*old, machines=machines))
        assert len(only(first, CreatePod)) == 8
        assert not [p for p in only(first, PatchPod) if POD_CORDON in p.annotations]
        new = [pod(machine=f"machine-{number}") for number in range(4, 8)]
        waiting = [
            pod(machine=f"machine-{number}", bound=False, ready=False, phase="Pending")
            for number in range(4)
        ]
        nodes = known_nodes(*idle(*(f"compute-{n}" for n in range(4))),
                            *idle(*(f"machine-{n}" for n in range(4, 8))))  # fmt: skip
        second = plan(seen(*old, *new, *waiting, machines=machines, nodes=nodes))
        marked = [p.name for p in only(second, PatchPod) if POD_CORDON in p.annotations]
        assert len(marked) == 2
        assert all(name.startswith("compute-") and len(name) == 9 for name in marked)

    def test_daemons_go_within_the_budget_when_the_mode_is_a_number_again(self) -> None:
        old = [pod(machine=f"machine-{number}") for number in range(4)]
        machines = {f"machine-{number}": machine(f"machine-{number}") for number in range(4)}
        found = plan(view(nodeset(4), *old, kubernetes_nodes=machines))
        assert [one.slot.pod for one in only(found, CreatePod)] == [
            f"compute-{number}" for number in range(4)
        ]
        new = [pod(number, bound=False, ready=False, phase="Pending") for number in range(4)]
        nodes = known_nodes(*idle(*machines))
        found = plan(view(nodeset(4), *old, *new, kubernetes_nodes=machines, nodes=nodes))
        marked = [p.name for p in only(found, PatchPod) if POD_CORDON in p.annotations]
        assert len(marked) == 1
        assert marked[0] in {p.metadata.name for p in old}


class TestRecords:
    """Feature row 46, D35: records of nodes that no pod stands for."""

    GONE = model.Node("gone", frozenset({"DOWN", "NOT_RESPONDING"}), comment=comment("gone"))

    def prune(self, *nodes: model.Node, policy: str, machines: tuple[Node, ...] = ()) -> list[str]:
        found = plan(
            seen(
                machines=machines,
                nodes=known_nodes(*nodes, *idle("other")),
                of=daemons(prune_slurm_node_records=policy),
            )
        )
        return [one.node for one in only(found, DeleteNodeRecord)]

    def test_those_of_gone_machines_are_pruned_when_asked_for(self) -> None:
        assert self.prune(self.GONE, policy="NodeNotFound") == ["gone"]
        assert self.prune(self.GONE, policy="Never") == []

    def test_one_whose_machine_is_called_otherwise_now_is_pruned_too(self) -> None:
        renamed = (machine("gone", host="node07"),)
        assert self.prune(self.GONE, policy="NodeNotFound", machines=renamed) == ["gone"]
        assert self.prune(self.GONE, policy="Never", machines=renamed) == []

    def test_one_of_a_machine_that_fits_is_kept_for_the_pod_that_comes(self) -> None:
        """Also under another pod's name: an administrator's drain must not go with it (D9)."""
        theirs = replace(self.GONE, comment=comment("gone", of="compute-x7x7x"))
        assert self.prune(theirs, policy="NodeNotFound", machines=(machine("gone"),)) == []

    def test_one_of_a_machine_that_fits_no_more_goes_with_its_pod(self) -> None:
        left = (machine("gone", "x:NoExecute"),)
        assert self.prune(self.GONE, policy="Never", machines=left) == ["gone"]

    def test_those_of_the_other_mode_go(self) -> None:
        left = model.Node("compute-3", frozenset({"DOWN"}), comment=comment("m", of="compute-3"))
        assert self.prune(left, policy="Never") == ["compute-3"]

    def test_one_that_may_get_jobs_is_drained_first(self) -> None:
        taking = replace(self.GONE, state=frozenset({"IDLE"}))
        found = plan(seen(machines=(), nodes=known_nodes(taking)))
        assert [one.node for one in only(found, DrainNode)] == ["gone"]


def test_a_settled_nodeset_asks_for_nothing() -> None:
    one = pod(machine="a")
    nodes = known_nodes(*idle("a", comment=comment("a")))
    found = plan(seen(one, machines=(machine("a"),), nodes=nodes))
    assert {type(step) for step in found.actions} == {SetPodConditions}
