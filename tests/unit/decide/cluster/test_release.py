"""Which releases of Slurm may follow which, and which keys a release does not know."""

from __future__ import annotations

import pytest

from penstock.api.admission import RelatedObjects
from penstock.api.cluster.cluster_ref import ControllerRef
from penstock.api.cluster.marks import CONFIG_HASH, CONFIG_RESTART
from penstock.api.kubernetes.meta import ObjectMeta
from penstock.api.registry import registry
from penstock.api.slinky.controller import Controller, ControllerSpec, ControllerStatus, Persistence
from penstock.api.slinky.nodeset import NodeSet, NodeSetSpec
from penstock.decide.cluster.release import findings, trial, unknown, unknown_words
from penstock.decide.config.transaction import next_step
from penstock.decide.config.view import ConfigView, Stage, Version
from penstock.slurm.versions import V24_11, V25_05, V25_11, V26_05, release_problem

CONF = "ClusterName=x\nHealthCheckTimeout=3\nPartitionName=a Nodes=ALL Exclusive=NODE\n"


def test_an_older_slurmctld_does_not_follow_a_newer_one_whose_state_stays() -> None:
    words = release_problem(V24_11, V26_05, persistent=True)
    assert words == (
        "slurmctld 24.11 cannot read the state that slurmctld 26.05 has written: use an image of "
        "26.05 or later"
    )
    (told,) = findings(words, running=True)
    assert (told.ok, told.reason) == (False, "SlurmVersionRefused")
    assert "slurmctld keeps its image" in told.message
    assert not release_problem(V24_11, V26_05, persistent=False)
    assert not release_problem(V26_05, V24_11, persistent=True)
    assert not release_problem(None, V26_05, persistent=True)
    assert not release_problem(V24_11, None, persistent=True)


def test_a_release_without_a_parser_of_ours_is_not_started() -> None:
    assert "Slurm 22.05 is not supported" in release_problem(
        V24_11._replace(year=22, month=5), None, persistent=False
    )


def test_keys_that_a_release_does_not_know_are_named_with_their_line() -> None:
    keys = unknown({"slurm.conf": CONF, "cgroup.conf": "CgroupSlice=a\n"}, V24_11)
    assert keys == (
        "CgroupSlice (line 1 of cgroup.conf, known since 25.05)",
        "HealthCheckTimeout (line 2 of slurm.conf, known since 26.05)",
        "Exclusive (line 3 of slurm.conf, known since 25.05)",
    )
    assert unknown_words(keys, V24_11).startswith("Slurm 24.11 does not know CgroupSlice")
    assert unknown({"slurm.conf": CONF}, V25_11) == (
        "HealthCheckTimeout (line 2 of slurm.conf, known since 26.05)",
    )
    assert unknown({"slurm.conf": CONF}, V26_05) == unknown({"slurm.conf": CONF}, None) == ()


def version(text: str) -> Version:
    return Version({"slurm.conf": text}, text)


@pytest.mark.parametrize("effective", ["old", ""])
def test_what_the_running_slurm_cannot_read_is_refused_before_anything_is_written(
    effective: str,
) -> None:
    old = version("old")
    view = ConfigView(
        candidate=version("new"),
        startup=old,
        last_known_good=old,
        has_started=True,
        is_ready=True,
        has_own_sidecar=True,
        active=effective,
        marks={},
        unknown="Slurm 24.11 does not know HealthCheckTimeout",
    )
    found = next_step(view)
    assert (found.stage, found.startup, found.last_known_good) == (
        Stage.REJECTED,
        old.data,
        old.data,
    )
    assert "HealthCheckTimeout" in found.words
    assert found.marks == {CONFIG_HASH: "old", CONFIG_RESTART: ""}


def test_files_tried_by_another_release_are_remarked() -> None:
    (told,) = trial(V26_05, V24_11)
    assert told.ok
    assert "spec.reconfigure.image has Slurm 24.11 and slurmctld 26.05" in told.message
    assert trial(V26_05, V26_05) == trial(None, V24_11) == trial(V26_05, None) == []


def controller(image: str, *, persistent: bool = True) -> Controller:
    return Controller(
        metadata=ObjectMeta(namespace="slurm", name="slurm"),
        spec=ControllerSpec(
            slurmctld={"image": image}, persistence=Persistence(enabled=persistent)
        ),
        status=ControllerStatus(state_version="26.05.5"),
    )


@pytest.mark.parametrize(
    ("image", "persistent", "words"),
    [
        ("x:24.11", True, "slurmctld 24.11 cannot read the state"),
        ("x:24.11", False, ""),
        ("x:26.05", True, ""),
        ("x:stable", True, ""),
        ("x:22.05", True, "Slurm 22.05 is not supported"),
    ],
)
def test_the_way_back_is_refused_when_it_is_written(
    image: str, persistent: bool, words: str
) -> None:
    old, new = (controller(one, persistent=persistent) for one in ("x:26.05-1", image))
    problems = registry().validate_change(new, old, RelatedObjects()).problems
    assert [one.path for one in problems] == (["spec.slurmctld.image"] if words else [])
    assert all(words in one.message for one in problems)


def test_a_worker_of_an_unsupported_release_is_refused_when_it_is_written() -> None:
    nodeset = NodeSet(
        metadata=ObjectMeta(namespace="slurm", name="compute"),
        spec=NodeSetSpec(
            controller_ref=ControllerRef(name="slurm"), slurmd={"image": "x/slurmd:23.11"}
        ),
    )
    found = registry().validate_change(nodeset, None, RelatedObjects())
    assert "spec.slurmd.image" in [one.path for one in found.problems]


def test_a_later_release_than_is_known_is_not_refused() -> None:
    assert not release_problem(V26_05._replace(month=11), V26_05, persistent=True)
    assert V25_05 < V25_11
