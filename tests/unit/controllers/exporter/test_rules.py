"""The published names, labels and rules of the exporter's metrics."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from penstock.catalog import exporter_metric as of
from penstock.controllers.exporter import node_state
from penstock.controllers.exporter.exposition import Exposition, render
from penstock.controllers.exporter.history import NodeHistory, Saved
from penstock.controllers.exporter.saved_state import pack, unpack
from penstock.controllers.exporter.snapshot import Place, Snapshot
from penstock.slurm.rest.records import (
    Counters,
    JobRecord,
    NodeRecord,
    RpcWire,
    UserRpcWire,
)

NOW = 1_800_000_000.0
Series = dict[tuple[str, frozenset[tuple[str, str]]], float]


def node(*states: str, name: str = "w-0", **fields: Any) -> NodeRecord:
    return NodeRecord(name=name, states=frozenset(states), **fields)


def job(*states: str, **fields: Any) -> JobRecord:
    every: dict[str, Any] = {"id": 1, "states": states or ("RUNNING",), **fields}
    return JobRecord(**every)


def exposed(
    nodes: tuple[NodeRecord, ...] = (), jobs: tuple[JobRecord, ...] = (), **more: Any
) -> Exposition:
    vpenso = more.pop("vpenso", False)
    history = more.pop("history", NodeHistory())
    taken = Snapshot(now=NOW, history=history, nodes=nodes, jobs=jobs, **more)
    return render(taken, vpenso_names=vpenso)


def series(found: Exposition) -> dict[str, list[tuple[Mapping[str, str], float]]]:
    """Labels and values by name, as Prometheus reads the text."""
    out: dict[str, list[tuple[Mapping[str, str], float]]] = {}
    for family in text_string_to_metric_families(found.text.decode()):
        for one in family.samples:
            out.setdefault(one.name, []).append((one.labels, one.value))
    return out


def only(found: Exposition, name: str) -> tuple[Mapping[str, str], float]:
    (one,) = series(found)[name]
    return one


COUNTERS = Counters(
    server_thread_count=3,
    schedule_cycle_last=11,
    rpcs_by_message_type=(RpcWire("REQUEST_PING", 5, 2_500_000), RpcWire("NEVER")),
    rpcs_by_user=(UserRpcWire("alice", 1001, 2, 0), UserRpcWire("bob", 1002, 0, 7)),
)


AMOUNTS = (
    "cpus",
    "allocated_cpus",
    "idle_cpus",
    "effective_cpus",
    "memory",
    "allocated_memory",
    "free_memory",
    "specialized_memory",
)


def everything(*, vpenso: bool = False) -> Exposition:
    drained = node("IDLE", "DRAIN", name="w-1", tres="cpu=2,gres/gpu=8", partitions=("main",))
    amounts = dict.fromkeys(AMOUNTS, 1)
    nodes = (drained, node("MIXED", "DRAIN", partitions=("main",), **amounts))
    history = NodeHistory()
    for at, states in enumerate(((node("IDLE", name="w-1"), node("IDLE")), nodes, nodes)):
        history.follow(states, NOW + 30 * at, 60)
    history.follow((node("IDLE", name="w-1"), node("IDLE")), NOW + 90, 60)
    found = job(nodes="w-0", start_time=1, account="a", user="u", cpus=1, allocated_tres="mem=1M")
    return exposed(
        nodes,
        (found,),
        history=history,
        counters=COUNTERS,
        places={"w-0": Place("group-1", "workers")},
        vpenso=vpenso,
    )


@pytest.mark.parametrize("vpenso", [False, True])
def test_each_declared_metric_is_served_with_its_labels_and_type(vpenso: bool):
    """S114."""
    text = everything(vpenso=vpenso).text.decode()
    types = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE))
    declared = (*of.SLURM, *of.VPENSO) if vpenso else of.SLURM
    without = {"slurm_account_jobs_pending", "slurm_account_jobs_suspended"}
    without |= {"slurm_user_jobs_pending", "slurm_user_jobs_suspended"}
    without |= {"slurm_partition_jobs_pending", "slurm_partition_cpus_other"}
    without |= {"slurm_partition_cpus_idle"}
    assert types.keys() - {one.name for one in declared} == set()
    assert {one.name for one in declared} - types.keys() <= without
    for one in declared:
        assert types.get(one.name, one.kind) == one.kind
    found = series(everything(vpenso=vpenso))
    for one in declared:
        name = f"{one.name}_count" if one.kind == "histogram" else one.name
        for labels, _ in found.get(name, []):
            assert set(labels) == set(one.labels)


def test_no_series_appears_twice():
    text = everything(vpenso=True).text.decode()
    lines = [one.rpartition(" ")[0] for one in text.splitlines() if not one.startswith("#")]
    assert len(lines) == len(set(lines))


def test_flags_of_a_node_are_true_or_empty_but_for_the_three_older_ones():
    labels, value = only(
        exposed((node("IDLE", "DRAIN", "POWERED_DOWN", reservation="r" * 60),)), "slurm_node_info"
    )
    assert value == 1
    assert labels["state_base"] == "IDLE"
    assert (labels["state_is_drain"], labels["state_is_maintenance"]) == ("true", "false")
    assert (labels["state_is_powered_down"], labels["state_is_fail"]) == ("true", "")
    assert labels["reservation_name"] == "r" * 50


@pytest.mark.parametrize(
    ("states", "unavailable", "draining", "failed"),
    [
        ({"IDLE"}, False, False, False),
        ({"DOWN"}, True, False, True),
        ({"IDLE", "DRAIN"}, True, False, True),
        ({"MIXED", "DRAIN"}, False, True, True),
        ({"ALLOCATED", "NOT_RESPONDING"}, True, False, False),
        ({"DOWN", "POWERED_DOWN"}, False, False, False),
        ({"IDLE", "DRAIN", "POWERING_UP"}, False, False, False),
        ({"IDLE", "INVALID_REG"}, True, False, False),
        ({"UNKNOWN"}, True, False, False),
        (set[str](), False, False, False),
    ],
)
def test_states_of_a_node(states: set[str], unavailable: bool, draining: bool, failed: bool):
    found = node(*states)
    assert node_state.is_unavailable(found) == unavailable
    assert node_state.is_draining(found) == draining
    assert node_state.is_failed(found) == failed


def test_memory_of_a_node_is_in_bytes_and_effective_memory_lacks_that_of_daemons():
    found = series(exposed((node("IDLE", memory=1000, specialized_memory=100, free_memory=5),)))
    assert found["slurm_node_memory_total_bytes"][0][1] == 1000 * 2**20
    assert found["slurm_node_memory_effective_bytes"][0][1] == 900 * 2**20
    assert found["slurm_node_memory_free_bytes"][0][1] == 5 * 2**20
    # What slurmrestd does not report has no series.
    assert "slurm_node_memory_allocated_bytes" not in found


def test_a_duration_is_counted_when_it_ends():
    history = NodeHistory()
    down, up = (node("DOWN"),), (node("IDLE"),)
    assert history.follow(down, NOW, 60)
    assert not history.follow(down, NOW + 30, 60)
    assert "slurm_node_unavailability_duration_seconds_count" not in series(
        exposed(down, history=history)
    )
    assert history.follow(up, NOW + 45, 60)
    found = series(exposed(up, history=history))
    assert found["slurm_node_unavailability_duration_seconds_sum"] == [({"node_name": "w-0"}, 45)]
    buckets = {
        labels["le"]: value
        for labels, value in found["slurm_node_unavailability_duration_seconds_bucket"]
    }
    assert (buckets["30"], buckets["60"], buckets["+Inf"]) == (0, 1, 1)
    # Another spelling of a bound would be another series than the original's.
    assert list(buckets)[-3:] == ["1.2096e+06", "2.592e+06", "+Inf"]


def test_durations_survive_a_restart():
    """S114."""
    before = NodeHistory()
    before.follow((node("DOWN"), node("DOWN", name="w-1")), NOW, 60)
    before.follow((node("IDLE"), node("DOWN", name="w-1")), NOW + 100, 60)
    after = NodeHistory(unpack(pack(before.saved)))
    after.follow((node("IDLE"), node("IDLE", name="w-1")), NOW + 1000, 60)
    ended = after.saved.unavailable.ended
    assert {name: one.total for name, one in ended.items()} == {"w-0": 100, "w-1": 1000}


def test_what_another_version_saved_is_not_read():
    assert unpack(b"") is None
    assert unpack(pack(Saved(version=99))) is None


def test_gpu_seconds_grow_by_gpus_and_time_but_not_by_a_pause():
    history, nodes = NodeHistory(), (node("ALLOCATED", tres="cpu=2,gres/gpu=8,gres/gpu:h100=8"),)
    for at in (0, 30, 1000):
        history.follow(nodes, NOW + at, 60)
    labels, value = only(exposed(nodes, history=history), "slurm_node_gpu_seconds_total")
    assert value == 240
    assert labels["state_base"] == "ALLOCATED"


def test_a_failure_is_a_change_that_was_seen():
    history = NodeHistory()
    history.follow((node("DOWN", reason="first"),), NOW, 60)
    history.follow((node("IDLE"),), NOW + 30, 60)
    history.follow((node("IDLE", "DRAIN", reason="bad disk"),), NOW + 60, 60)
    history.follow((node("DOWN", "DRAIN", reason="bad disk"),), NOW + 90, 60)
    labels, value = only(exposed(history=history), "slurm_node_fails_total")
    assert (value, labels["reason"], labels["state_is_drain"]) == (1, "bad disk", "true")


def test_a_node_that_is_gone_has_no_series():
    history = NodeHistory()
    history.follow((node("DOWN"), node("IDLE", name="w-1")), NOW, 60)
    assert history.follow((node("IDLE", name="w-1"),), NOW + 30, 60)
    assert not history.saved.unavailable.since
    assert {labels[0] for labels in history.gpu_seconds} == {"w-1"}


@pytest.mark.parametrize(
    ("found", "seconds"),
    [
        (job("RUNNING", start_time=int(NOW) - 50), 50),
        (job("COMPLETED", start_time=100, end_time=160), 60),
        (job("PENDING"), None),
        (job("PENDING", start_time=int(NOW) + 50), None),
        (job("FAILED", start_time=100), None),
    ],
)
def test_duration_of_a_job(found: JobRecord, seconds: float | None):
    value = series(exposed(jobs=(found,))).get("slurm_job_duration_seconds")
    assert value == (None if seconds is None else [({"job_id": "1"}, seconds)])


@pytest.mark.parametrize(
    ("found", "cpus", "memory"),
    [
        (job(allocated_tres="cpu=4,mem=2G", requested_tres="cpu=1", cpus=9), 4, 2 * 2**30),
        (job(requested_tres="cpu=1,mem=500M", cpus=9), 1, 500 * 2**20),
        (job(cpus=9, memory_per_node=10, node_count=2), 9, 20 * 2**20),
        (job(memory_per_node=10), None, None),
    ],
)
def test_resources_of_a_job(found: JobRecord, cpus: float | None, memory: float | None):
    every = series(exposed(jobs=(found,)))
    values = [every.get(name) for name in ("slurm_job_cpus", "slurm_job_memory_bytes")]
    assert [one[0][1] if one else None for one in values] == [cpus, memory]


def test_times_of_a_job_are_unix_seconds_and_only_an_ended_one_has_finished():
    ended = job("COMPLETED", submit_time=5, start_time=6, end_time=7, mail="", user_id="1000")
    running = job("RUNNING", id=2, end_time=9)
    (first, _), (second, _) = series(exposed(jobs=(ended, running)))["slurm_job_info"]
    assert (first["submit_time"], first["end_time"], first["finished_time"]) == ("5", "7", "7")
    assert (second["submit_time"], second["end_time"], second["finished_time"]) == ("", "9", "")


def test_each_node_of_a_job_has_a_series_with_its_place():
    jobs = (job(nodes="w-[0-1]"), job(id=2, nodes="w-[0-"))
    found = series(exposed(jobs=jobs, places={"w-1": Place("g", "set")}))["slurm_node_job"]
    assert [
        (one["node_name"], one["nvlink_instance_group"], one["nodeset_name"]) for one, _ in found
    ] == [
        ("w-0", "", ""),
        ("w-1", "g", "set"),
    ]


def test_calls_of_slurmctld_are_in_seconds_and_those_that_never_came_have_no_series():
    found = series(exposed(counters=COUNTERS))
    assert found["slurm_controller_rpc_calls_total"] == [({"message_type": "REQUEST_PING"}, 5)]
    assert found["slurm_controller_rpc_duration_seconds_total"][0][1] == 2.5
    assert found["slurm_controller_rpc_user_calls_total"] == [
        ({"user": "alice", "user_id": "1001"}, 2)
    ]
    times = found["slurm_controller_rpc_user_duration_seconds_total"]
    assert [one["user"] for one, _ in times] == ["bob"]


@pytest.mark.parametrize(
    ("states", "word"),
    [
        ({"IDLE"}, "idle"),
        ({"IDLE", "NOT_RESPONDING"}, "idle*"),
        ({"MIXED", "DRAIN"}, "draining"),
        ({"IDLE", "DRAIN"}, "drained"),
        ({"IDLE", "COMPLETING", "DRAIN"}, "draining"),
        ({"IDLE", "MAINTENANCE"}, "maint"),
        ({"IDLE", "RESERVED"}, "reserved"),
        ({"DOWN"}, "down"),
        ({"IDLE", "POWERED_DOWN"}, "idle~"),
    ],
)
def test_long_state_is_the_word_of_sinfo(states: set[str], word: str):
    assert node_state.long_state(node(*states)) == word


def test_names_of_vpensos_exporter_sum_nodes_and_jobs():
    nodes = (
        node(
            "MIXED",
            cpus=8,
            allocated_cpus=6,
            gres="gpu:a100:4(S:0)",
            gres_used="gpu:a100:3(IDX:0-2)",
            partitions=("main",),
        ),
        node(
            "IDLE",
            "DRAIN",
            name="w-1",
            cpus=8,
            allocated_cpus=0,
            gres="gpu:4",
            partitions=("main",),
        ),
    )
    jobs = (
        job("RUNNING", user="alice", account="team", cpus=6),
        job("PENDING", id=2, reason="Dependency", user="alice", account="team", partition="main"),
        job("COMPLETED", "COMPLETING", id=3),
    )
    found = {name: rows[0][1] for name, rows in series(exposed(nodes, jobs, vpenso=True)).items()}
    assert [found[f"slurm_cpus_{one}"] for one in ("alloc", "idle", "other", "total")] == [
        6,
        2,
        8,
        16,
    ]
    assert [found[f"slurm_gpus_{one}"] for one in ("alloc", "idle", "total")] == [3, 1, 8]
    assert (found["slurm_nodes_mix"], found["slurm_nodes_drain"], found["slurm_nodes_idle"]) == (
        1,
        1,
        0,
    )
    assert (found["slurm_queue_pending"], found["slurm_queue_pending_dependency"]) == (1, 1)
    assert (found["slurm_queue_completing"], found["slurm_queue_completed"]) == (1, 0)
    assert (found["slurm_account_cpus_running"], found["slurm_user_jobs_pending"]) == (6, 1)
    assert (found["slurm_partition_cpus_total"], found["slurm_partition_jobs_pending"]) == (16, 1)
