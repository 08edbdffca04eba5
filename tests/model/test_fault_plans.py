"""Fault plans keep the promises, and would notice if one were broken.

A few of them. CI plays 120 by themselves, and anybody may: `make plans COUNT=2000 SEED=1`.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Generator
from dataclasses import dataclass, replace

import pytest

from fault_plans.families import HAPPENINGS
from fault_plans.logs import logging
from fault_plans.nebius_specs import CURRENT, OLDER
from fault_plans.plan import Happening, Layout, Plan, Step
from fault_plans.play import Outcome, focused, plan_of, play
from fault_plans.pool import play_all
from fault_plans.together import together_of
from fault_plans.world import NODESET, SPACE, World
from penstock.api.kubernetes.kinds import Pod
from penstock.api.nebius import names
from penstock.controllers.nebius import node_outage, node_replacement
from penstock.simulation.event_loop import StuckError, simulate
from support.mutations import MUTATIONS, Mutation
from support.nebius_mutations import OF_NEBIUS, jails_in_use_are_overwritten

pytestmark = pytest.mark.long

COUNT = int(os.environ.get("PENSTOCK_PLANS") or 40)
FIRST = int(os.environ.get("PENSTOCK_SEED", "1"))


@dataclass(frozen=True)
class Hunt:
    """Plans of these happenings, from a seed on, that notice a mutation before `within` are played.

    The seed is that of the first one to notice it when it was last looked for; a change of the
    plans or of the operator makes it another one of those that follow.
    """

    seed: int
    happenings: tuple[str, ...]
    layout: Layout
    silence: float
    within: int = 60


def hunt(
    seed: int,
    *happenings: str,
    leased: bool = False,
    daemons: bool = False,
    claims: tuple[str, str] | None = None,
    pinned: bool = False,
    accounted: bool = False,
    tokens: bool = False,
    left: bool = False,
    external: bool = False,
    silence: float = 0.0,
) -> Hunt:
    places = ((SPACE, NODESET),) if daemons else ()
    layout = Layout(
        leased=leased,
        daemons=places,
        claims=claims,
        pinned=pinned,
        login=left,
        accounted=accounted or left,
        tokens=tokens or left,
        left=left,
        external=external,
    )
    return Hunt(seed, happenings, layout, silence)


HUNTS = {
    "unknown_counts_as_drained": hunt(2, "scale", "crowd", "slurm"),
    "jobs_are_ignored": hunt(2, "scale", "crowd", "suspend"),
    "drain_is_not_waited_for": hunt(2, "scale", "crowd"),
    "nothing_is_checked_again": hunt(10, "scale", "drain"),
    "every_drain_is_ours": hunt(1, "drain", "shrink", "cordon_pod"),
    "records_are_left": hunt(2, "scale", "evict_pod"),
    "nodesets_have_no_finalizer": hunt(1, "remake_nodeset", "crowd"),
    "nodes_stay_down": hunt(1, "delete_pod", "drain_machine", "taint_machine"),
    "one_worker_less": hunt(2, "scale"),
    "the_lease_is_not_heeded": hunt(3, "scale", "standby", "isolate", leased=True),
    "slurm_does_not_heed_the_lease": hunt(
        1, "scale", "drain", "crowd", "pause_at_write", leased=True
    ),
    "failures_are_final": hunt(1, "scale", "refuse", "lose", "unreachable"),
    "forgotten_workers_are_left": hunt(1, "lose_state", "scale"),
    "watches_end": hunt(2, "scale", "cut", "expire"),
    "edits_are_left": hunt(1, "edit"),
    "budget_is_dropped": hunt(1, "template", "scale"),
    "gone_pods_are_not_counted": hunt(1, "template", "scale", "delete_pod"),
    "settled_objects_are_written": hunt(1, "scale", silence=30.0),
    "configuration_is_not_delivered": hunt(1, "configure"),
    "configuration_restarts_slurmctld": hunt(1, "configure"),
    "rejected_configuration_is_delivered": hunt(1, "misconfigure", "restart_slurmctld"),
    "rejected_configuration_is_not_put_back": hunt(1, "misconfigure", "restart_slurmctld"),
    "files_that_are_read_count_as_served_with": hunt(1, "rebind"),
    "trials_without_a_verdict_are_taken": hunt(1, "configure", "unsure"),
    "unheard_files_go_untried": hunt(1, "configure", "unheard"),
    "partitions_are_not_proven": hunt(4, "limit", "reconfigure"),
    "tokens_are_not_renewed": hunt(3, "jump", "restart_slurmctld", "remake_restapi"),
    "returning_kubernetes_nodes_are_missed": hunt(1, "label_machine", daemons=True),
    "renamed_kubernetes_nodes_keep_their_slurm_node": hunt(1, "rename_node", daemons=True),
    "workers_go_that_cannot_come_back": hunt(3, "template", "taint_machine", daemons=True),
    "reservations_are_not_waited_for": hunt(1, "schedule", "template"),
    "pvcs_go_with_any_pod": hunt(5, "scale", "delete_pod", claims=("Delete", "Delete")),
    "pins_are_forgotten": hunt(3, "scale", "delete_pod", pinned=True),
    "pods_of_the_other_mode_stay": hunt(1, "switch_mode", daemons=True),
    "changed_passwords_are_missed": hunt(1, "password", "scale", accounted=True),
    "slurmdbd_restarts_for_its_file": hunt(1, "password", "tune", accounted=True),
    "tokens_outlive_their_key": hunt(1, "rekey_jwt", tokens=True),
    "tokens_of_users_end": hunt(1, "lifetime", tokens=True),
    "new_keys_are_good_at_once": hunt(1, "rekey"),
    "adopted_workloads_are_recreated": hunt(1, "job", left=True),
    "workers_of_another_operator_are_old": hunt(1, "job", left=True),
    "external_slurmctlds_end_with_their_controller": hunt(
        1, "remake_controller", "remake_nodeset", "crowd", external=True
    ),
}


def of_nebius(seed: int, shape: str, *happenings: str) -> Hunt:
    return Hunt(seed, happenings, Layout(nebius=shape), 0.0, within=20)


NEBIUS_HUNTS = {
    "jobs_are_ignored": of_nebius(1, CURRENT, "scale", "crowd", "suspend"),
    "unknown_counts_as_drained": of_nebius(1, CURRENT, "scale", "crowd", "slurm"),
    "every_drain_is_ours": of_nebius(1, CURRENT, "drain", "shrink", "cordon_pod"),
    "budget_is_dropped": of_nebius(1, OLDER, "template", "scale"),
    "rejected_configuration_is_delivered": of_nebius(1, CURRENT, "spoil", "restart_slurmctld"),
    "clusters_go_before_their_workers": of_nebius(1, OLDER, "remake_nodeset", "crowd"),
    "templates_of_an_older_spec_count_as_equal": of_nebius(
        1, OLDER, "template", "scale", "customize"
    ),
}
"""By name of a mutation, of all APIs or of this one alone, plans of SlurmClusters."""
OVERWRITTEN = (
    Step(165.0, "fill", (200.0,)),
    Step(166.0, "maintain", ("downscaleAndOverwritePopulateJail", 100.0, 0)),
    Step(230.0, "resume", (0,)),
)


LATE_DELETE = (Step(12.0, "late", (40.0, 1, "DELETE")), Step(13.0, "scale", (1, 0)))
SCRIPTS = {
    "deletes_name_no_uid": (
        *LATE_DELETE,
        Step(45.0, "scale", (2, 0)),
        Step(45.1, "crowd", (60.0, 20.0)),
    ),
    "deletes_name_no_version": (
        *LATE_DELETE,
        Step(20.0, "scale", (2, 0)),
        Step(20.1, "crowd", (60.0, 20.0)),
    ),
    "slurm_is_not_asked_again": (
        Step(12.0, "overtake", (1,)),
        Step(13.0, "scale", (1, 0)),
        Step(30.0, "scale", (1, 0)),
    ),
    "drains_are_not_remembered": (
        Step(15.0, "drain", (0, "bad disk")),
        Step(40.0, "delete_pod", (0,)),
    ),
}
"""Plans for what takes too long to come about by chance."""


@pytest.fixture(autouse=True)
def _quiet() -> Generator[None]:
    with logging(show=False):
        yield


@pytest.mark.timeout(1800)
def test_fault_plans_keep_every_promise(figure: Callable[[str], None]) -> None:
    played = list(play_all(range(FIRST, FIRST + COUNT)))
    broken = [str(one) for one in played if one.broken]
    assert not broken, "\n".join(broken)
    assert len(played) == COUNT
    taken = sum(one.cpu for one in played)
    figure(f"{COUNT} fault plans from seed {FIRST}, {COUNT / taken:.1f} per CPU-second")


@pytest.mark.timeout(1800)
def test_plans_of_an_external_slurmctld_keep_every_promise() -> None:
    played = list(play_all(range(FIRST, FIRST + COUNT // 4), kind="external"))
    broken = [str(one) for one in played if one.broken]
    assert not broken, "\n".join(broken)
    assert len(played) == COUNT // 4


@pytest.mark.timeout(1800)
def test_plans_of_workers_of_a_second_api_keep_every_promise() -> None:
    played = list(play_all(range(FIRST, FIRST + COUNT // 4), kind="tiny"))
    broken = [str(one) for one in played if one.broken]
    assert not broken, "\n".join(broken)
    assert len(played) == COUNT // 4


@pytest.mark.timeout(1800)
def test_plans_of_slurm_clusters_keep_every_promise() -> None:
    played = list(play_all(range(FIRST, FIRST + COUNT // 4), kind="nebius"))
    broken = [str(one) for one in played if one.broken]
    assert not broken, "\n".join(broken)
    assert len(played) == COUNT // 4


@pytest.mark.timeout(1800)
def test_plans_of_slurm_clusters_that_soperator_left_keep_every_promise() -> None:
    """D80, D81: no pod that was left is deleted, no job is lost and no key changes."""
    played = list(play_all(range(FIRST, FIRST + COUNT // 16), kind="nebius-left"))
    broken = [str(one) for one in played if one.broken]
    assert not broken, "\n".join(broken)
    assert len(played) == COUNT // 16


@pytest.mark.timeout(1800)
def test_plans_of_several_clusters_in_one_namespace_keep_every_promise() -> None:
    """S010: no job, key, Slurm node or file of one cluster reaches another one."""
    played = list(play_all(range(FIRST, FIRST + COUNT // 16), kind="together"))
    broken = [str(one) for one in played if one.broken]
    assert not broken, "\n".join(broken)
    assert len(played) == COUNT // 16


def test_a_plan_notices_a_key_of_another_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    """S010."""

    def shared(cluster: str) -> str:
        del cluster
        return "slurm-munge"

    monkeypatch.setattr(names, "munge_secret", shared)
    broken = play(together_of(1), silence=0.0, patience=60.0).broken
    assert any("west-compute-0 names slurm-munge of slurm" in one for one in broken)


def test_a_plan_notices_that_a_pod_of_an_untouched_cluster_goes() -> None:
    """S010."""
    path = "/api/v1/namespaces/slurm/pods/east-compute-1"

    def kill(world: World) -> None:
        world.api_server.ask("DELETE", path, {})

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(HAPPENINGS, "kill", Happening(1, lambda _: (), kill))
        plan = replace(together_of(1), steps=(Step(90.0, "kill"),))
        broken = play(plan, silence=0.0).broken
    assert any("pod east-compute-1 goes, of a cluster that nobody touched" in one for one in broken)


def test_a_plan_is_the_same_each_time() -> None:
    first, second = play(plan_of(7), silence=0.0), play(plan_of(7), silence=0.0)
    assert len(first.writes) > 20
    assert first.writes == second.writes
    assert first.plan == second.plan


def test_a_plan_is_the_same_in_another_process() -> None:
    """What a set of strings is walked in the order of differs from process to process."""
    (there,) = play_all([7], workers=1, silence=0.0)
    assert there.digest == play(plan_of(7), silence=0.0).digest


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda one: one.__name__)
def test_plans_notice_a_guard_that_is_missing(
    mutation: Mutation, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps, hunt = SCRIPTS.get(mutation.__name__), HUNTS.get(mutation.__name__)
    if steps is not None:
        # The same steps at other moments: pauses are drawn by the seed.
        plans = [Plan(seed, 2, steps) for seed in range(1, 6)]
        assert not play(plans[0], silence=0.0).broken
    else:
        assert hunt is not None
        plans = [
            focused(hunt.seed + number, *hunt.happenings, layout=hunt.layout)
            for number in range(hunt.within)
        ]
    silence = hunt.silence if hunt else 0.0
    mutation(monkeypatch)
    assert any(_noticed(play(one, silence=silence, patience=180.0)) for one in plans)


@pytest.mark.parametrize("name", NEBIUS_HUNTS)
def test_plans_of_slurm_clusters_notice_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mutation = OF_NEBIUS.get(name) or next(one for one in MUTATIONS if one.__name__ == name)
    one = NEBIUS_HUNTS[name]
    plans = [
        focused(one.seed + number, *one.happenings, layout=one.layout)
        for number in range(one.within)
    ]
    mutation(monkeypatch)
    assert any(_noticed(play(plan, silence=one.silence, patience=180.0)) for plan in plans)


def test_plans_of_slurm_clusters_notice_a_jail_that_is_overwritten_in_use(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plan = Plan(1, 2, OVERWRITTEN, Layout(nebius=CURRENT))
    assert not play(plan, silence=0.0).broken
    jails_in_use_are_overwritten(monkeypatch)
    assert _noticed(play(plan, silence=0.0, patience=180.0))


def test_plans_of_slurm_clusters_notice_a_reboot_that_ends_a_job(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """S115."""
    jobs = tuple(Step(120.0 + number, "job", (1, 900.0, 0)) for number in range(4))
    asked = (Step(130.0 + number, "reboot_kubernetes_node", (number, 900.0)) for number in range(3))
    # A plan ends with its last step, and a reboot takes its time.
    last = Step(700.0, "job", (1, 10.0, 0))
    plan = Plan(1, 3, (*jobs, *asked, last), Layout(nebius=CURRENT))
    assert not play(plan, silence=0.0).broken

    def nobody(_: object) -> bool:
        return False

    monkeypatch.setattr(node_outage, "has_worker", nobody)
    assert _noticed(play(plan, silence=0.0))


def test_plans_of_slurm_clusters_notice_a_replacement_that_ends_a_job(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """S174."""
    job = Step(120.0, "job", (3, 400.0, 0))
    broken = Step(130.0, "break_machine", (1,))
    last = Step(900.0, "job", (1, 10.0, 0))
    plan = Plan(1, 3, (job, broken, last), Layout(nebius=CURRENT))
    outcome = play(plan, silence=0.0)
    assert not outcome.broken
    assert any("delete /nodes" in what for what in outcome.summary)

    def nobody(_: object) -> bool:
        return False

    async def none(*_: object) -> list[Pod]:
        return []

    monkeypatch.setattr(node_replacement, "has_worker", nobody)
    monkeypatch.setattr(node_replacement, "live_workers", none)
    assert _noticed(play(plan, silence=0.0))


def _noticed(outcome: Outcome) -> bool:
    """Whether a promise broke, and not a mutation that does not fit the code any more."""
    return bool(outcome.broken) and not any("InternalError" in one for one in outcome.broken)


def test_a_simulation_that_would_never_end_is_one_that_broke() -> None:
    async def doubling() -> None:
        loop = asyncio.get_running_loop()

        def again() -> None:
            loop.call_later(1.0, again)
            loop.call_later(1.0, again)

        again()
        await asyncio.sleep(3600.0)

    with pytest.raises(StuckError, match="timers were set within"):
        simulate(doubling(), timers=1000)
