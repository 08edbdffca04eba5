"""NodeSetPowerStates of ephemeral NodeSets."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from fault_plans import nebius_specs, worker_sets
from fault_plans.kinds import path_of
from penstock.api.kubernetes.meta import Json
from unit.controllers.nebius.lab import NODESETS, SPACE, Lab, played

NAME = "compute"
POWER_STATES = "nodesetpowerstates"
OF_POWER = f"{worker_sets.NEBIUS}/{POWER_STATES}"
NODE_SET = path_of(SPACE, worker_sets.OF_NEBIUS, NAME)
POWER_STATE = NODE_SET.replace(NODESETS, POWER_STATES)
BOTH = {"compute-0", "compute-2"}


def condition(lab: Lab, plural: str = POWER_STATES) -> tuple[str, str, str]:
    return lab.condition("Ready", plural, NAME)


def active(lab: Lab) -> list[int]:
    found: list[int] = lab.of_kind(POWER_STATES, NAME).get("spec", {}).get("activeNodes", [])
    return found


def declare(lab: Lab, **spec: object) -> None:
    """A cluster with an ephemeral NodeSet of three nodes, of which one is up at the start."""
    lab.world.prepare(SPACE)
    lab.world.declare_cluster(SPACE)
    found = {**nebius_specs.node_set(3), "ephemeralNodes": True, **spec}
    lab.world.make(SPACE, lab.world.plural, "NodeSet", NAME, found)


def activate(lab: Lab, *ordinals: int) -> None:
    """What Slurm's programs write."""
    body: Json = {"spec": {"activeNodes": list(ordinals)}}
    lab.world.ask("PATCH", POWER_STATE, body)


def flag(lab: Lab, name: str, *flags: str) -> None:
    """What slurmctld notes of a node of slurm.conf."""
    ctld = lab.world.slurm.ctld
    if name not in ctld.nodes:
        ctld.register(name, started=0)
    ctld.nodes[name].flags = {"CLOUD", *flags}
    ctld.touch()


def playing(play: Callable[[Lab], Awaitable[None]], **spec: object) -> None:
    async def from_start(lab: Lab) -> None:
        declare(lab, **spec)
        await lab.until(lambda: condition(lab, NODESETS)[0] == "True")
        await play(lab)

    played(from_start, replicas=-1)


def test_the_object_is_created_as_published_and_the_first_nodes_are_up() -> None:
    async def play(lab: Lab) -> None:
        found = lab.of_kind(POWER_STATES, NAME)
        meta, spec, status = found["metadata"], found["spec"], found["status"]
        assert meta["labels"] == {"slurm.nebius.ai/nodeset": NAME}
        (owner,) = meta["ownerReferences"]
        assert (owner["kind"], owner["name"], owner["controller"]) == ("NodeSet", NAME, True)
        assert spec == {"nodeSetRef": NAME, "activeNodes": [0, 1]}
        assert status["activeCount"] == 2
        assert condition(lab) == ("True", "ActiveNodesReconciled", "2 active nodes reconciled")
        assert lab.pods(NAME) == ["compute-0", "compute-1"]
        assert lab.of_kind(NODESETS, NAME)["status"]["replicas"] == 2
        assert lab.condition("Served", NODESETS, NAME)[0] == "True"
        await lab.settled(1)
        assert await lab.settled() == []

    playing(play, initialNumberEphemeralNodes=2)


def test_a_resumed_node_gets_a_pod_and_a_suspended_one_loses_it() -> None:
    async def play(lab: Lab) -> None:
        activate(lab, 0, 2)
        await lab.until(lambda: set(lab.pods(NAME)) == BOTH)
        flag(lab, "compute-0", "POWERING_DOWN")
        activate(lab, 2)
        await lab.until(lambda: lab.pods(NAME) == ["compute-2"])
        assert "DRAIN" not in lab.world.slurm.ctld.nodes["compute-0"].flags
        await lab.until(lambda: lab.phase(NODESETS, NAME) == "Ready")

    playing(play)


def test_a_busy_worker_outlives_a_suspend_by_hand_until_its_job_ends() -> None:
    async def play(lab: Lab) -> None:
        await lab.until(lambda: "compute-0" in lab.world.slurm.ctld.nodes)
        job = lab.world.slurm.submit(1)
        assert job is not None
        flag(lab, "compute-0")
        activate(lab)
        await lab.until(lambda: "POWER_DOWN" in lab.world.slurm.ctld.nodes["compute-0"].flags)
        await lab.settled(60)
        assert lab.pods(NAME) == ["compute-0"]
        lab.world.slurm.finish(job)
        flag(lab, "compute-0", "POWERING_DOWN")
        await lab.until(lambda: lab.pods(NAME) == [])
        assert lab.world.slurm.lost_jobs == []

    playing(play)


def test_a_resume_whose_call_was_lost_is_carried_out() -> None:
    async def play(lab: Lab) -> None:
        flag(lab, "compute-2", "POWERING_UP")
        await lab.until(lambda: active(lab) == [0, 2])
        await lab.until(lambda: set(lab.pods(NAME)) == BOTH)

    playing(play)


def test_a_node_that_a_job_gets_the_moment_it_is_down_stays_active() -> None:
    """The last poll shows it on its way down, when Slurm's program writes that it comes up."""

    async def play(lab: Lab) -> None:
        for turn in range(8):
            activate(lab, 0)
            flag(lab, "compute-2", "POWERING_DOWN")
            await lab.settled(10 + 0.13 * turn)
            flag(lab, "compute-2", "POWERING_UP")
            activate(lab, 0, 2)
            seen: list[list[int]] = []
            for _ in range(50):
                seen.append(active(lab))
                await lab.settled(0.05)
            assert seen == [[0, 2]] * 50
        await lab.until(lambda: set(lab.pods(NAME)) == BOTH)

    playing(play)


def test_a_deleted_object_comes_back_with_the_nodes_that_are_up() -> None:
    async def play(lab: Lab) -> None:
        activate(lab, 0, 2)
        await lab.until(lambda: set(lab.pods(NAME)) == BOTH)
        lab.world.ask("DELETE", POWER_STATE, {})
        await lab.until(lambda: active(lab) == [0, 2])
        await lab.settled(20)
        assert set(lab.pods(NAME)) == BOTH
        assert [one for one in lab.deletes() if "/pods/" in one] == []

    playing(play)


def test_an_object_of_slurms_program_gets_an_owner_and_the_nodes_that_are_up() -> None:
    async def play(lab: Lab) -> None:
        meta: Json = {"name": NAME}
        body: Json = {
            "kind": "NodeSetPowerState",
            "metadata": meta,
            "spec": {"nodeSetRef": NAME, "activeNodes": [2]},
        }
        lab.world.ask("DELETE", POWER_STATE, {})
        lab.world.ask("POST", POWER_STATE.rpartition("/")[0], body)
        await lab.until(lambda: active(lab) == [0, 2])
        assert lab.of_kind(POWER_STATES, NAME)["metadata"]["ownerReferences"]

    playing(play)


def test_ordinals_beyond_the_nodes_are_reported_and_get_no_pod() -> None:
    async def play(lab: Lab) -> None:
        activate(lab, 0, 7)
        await lab.until(lambda: condition(lab)[1] == "OrdinalsOutOfRange")
        status, _, words = condition(lab)
        assert status == "False"
        assert "spec.activeNodes has 7, and NodeSet compute has ordinals below 3" in words
        await lab.settled(20)
        assert lab.pods(NAME) == ["compute-0"]
        assert lab.of_kind(POWER_STATES, NAME)["status"]["activeCount"] == 1

    playing(play)


def test_fewer_replicas_end_the_nodes_beyond_and_slurm_conf_keeps_them_until_then() -> None:
    async def play(lab: Lab) -> None:
        activate(lab, 0, 2)
        await lab.until(lambda: set(lab.pods(NAME)) == BOTH)
        await lab.until(lambda: "compute-2" in lab.world.slurm.ctld.nodes)
        flag(lab, "compute-2")
        lab.world.ask("PATCH", NODE_SET, {"spec": {"replicas": 1}})
        await lab.until(lambda: "POWER_DOWN" in lab.world.slurm.ctld.nodes["compute-2"].flags)
        assert "NodeName=compute-[0-2] " in slurm_conf(lab)
        flag(lab, "compute-2", "POWERING_DOWN")
        await lab.until(lambda: lab.pods(NAME) == ["compute-0"])
        await lab.until(lambda: "NodeName=compute-0 " in slurm_conf(lab))

    playing(play)


def slurm_conf(lab: Lab) -> str:
    data: dict[str, str] = lab.get("/configmaps", "slurm-slurm-configs")["data"]
    return "".join(data.values())


def test_an_object_of_a_nodeset_that_is_not_ephemeral_has_no_effect() -> None:
    async def play(lab: Lab) -> None:
        await lab.available()
        body: Json = {
            "kind": "NodeSetPowerState",
            "metadata": {"name": NAME},
            "spec": {"nodeSetRef": NAME, "activeNodes": [0]},
        }
        lab.world.ask("POST", POWER_STATE.rpartition("/")[0], body)
        await lab.until(lambda: condition(lab)[1] == "NodeSetNotEphemeral")
        assert len(lab.pods(NAME)) == 2

    played(play)


def test_rights_stay_while_a_process_that_sees_no_nodeset_acts_too():
    """As after a change of leaders. Without its account slurmctld could power nothing up."""
    account = f"{SPACE}-slurm-controller"

    async def play(lab: Lab) -> None:
        lab.world.prepare(SPACE)
        lab.world.declare_cluster(SPACE)
        await lab.until(lambda: lab.phase() == "Available")
        late = lab.world.operator(leased=False)
        await lab.settled(5)
        late.connection.delay_events(NODESETS)
        found = {**nebius_specs.node_set(3), "ephemeralNodes": True}
        lab.world.make(SPACE, lab.world.plural, "NodeSet", NAME, found)
        await lab.until(lambda: lab.find("/serviceaccounts", account))
        # Something to reconcile for the late one.
        lab.world.edit_cluster(SPACE, {"customSlurmConfig": "MinJobAge=30"})
        await lab.settled()
        assert f"serviceaccounts/{account}" not in lab.gone
        late.connection.release_events()
        lab.world.ask("DELETE", NODE_SET, {})
        await lab.until(lambda: lab.find("/serviceaccounts", account) is None)
        # In plans no ephemeral NodeSet goes, so there these objects never do.
        lab.world.promises.broken.clear()
        await lab.world.crash(late)

    played(play, replicas=-1)
