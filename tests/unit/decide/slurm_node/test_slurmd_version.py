"""A user is told which release of slurmd the pods have, where slurmctld cannot work with it."""

from __future__ import annotations

import msgspec
import pytest

from penstock.api.kubernetes.kinds import Pod
from penstock.api.kubernetes.meta import Json
from penstock.decide.slurm_node.slurmd_version import (
    INCOMPATIBLE,
    REASON,
    finding,
    is_release_rejected,
    release_finding,
)
from penstock.slurm.known import Unknown
from penstock.slurm.state import Node
from penstock.slurm.versions import V24_11, V25_11, V26_05, Version
from support.nodesets import NOW, UNREAD, known_nodes, node, pod

HTTP: Json = {"image": "mine/slurmd:blue", "readinessProbe": {"httpGet": {"port": "slurmd"}}}
TCP: Json = {"image": "mine/slurmd:blue", "readinessProbe": {"tcpSocket": {"port": "slurmd"}}}


def unready(ordinal: int) -> Pod:
    one = pod(ordinal)
    status = msgspec.structs.replace(one.status, conditions=())
    return msgspec.structs.replace(one, status=status)


def _record(ordinal: int, version: str, started: float = NOW) -> Node:
    return node(ordinal, version=version, slurmd_start_time=int(started))


def told(slurmctld: Version | None, *versions: str, slurmd: Json = HTTP) -> str:
    """The message, once none of the pods is ready; empty when nothing is said."""
    records = [_record(number, one) for number, one in enumerate(versions)]
    pods = [unready(number) for number in range(len(versions))]
    found = finding(slurmctld, pods, known_nodes(*records), slurmd)
    assert found is None or (found.ok, found.reason) == (False, REASON)
    return found.message if found is not None else ""


@pytest.mark.parametrize("version", ["26.05.5", "25.11.1", "25.05.2", "24.11.5"])
def test_the_three_releases_before_slurmctlds_are_accepted(version: str) -> None:
    assert told(V26_05, version, slurmd=TCP) == ""


def test_a_slurmd_that_is_too_old_or_too_new_is_named_with_the_releases_that_work() -> None:
    said = told(V26_05, "26.05.5", "24.05.3")
    assert said == (
        "1 pods have slurmd 24.05 (compute-1): slurmctld 26.05 works with slurmd 24.11 to 26.05: "
        "set spec.slurmd.image to one of these"
    )
    assert "slurmd 26.05 (compute-0)" in told(V25_11, "26.05.5")


def test_an_old_slurmd_whose_image_does_not_say_so_never_answers_its_probes() -> None:
    said = told(V26_05, "24.11.5")
    assert "1 pods cannot become ready (compute-0): slurmd 24.11 answers no HTTP probe" in said
    assert "image mine/slurmd:blue does not begin with 24.11" in said
    assert "tcpSocket probes in spec.slurmd" in said
    assert told(None, "24.11.5") == said


def test_a_worker_that_is_ready_answers_whatever_its_release() -> None:
    assert finding(V26_05, [pod(0)], known_nodes(_record(0, "24.11.5")), HTTP) is None


def test_no_pod_is_read_while_each_release_works() -> None:
    """Each reconcile asks this about all workers."""
    assert finding(V26_05, UNREAD, known_nodes(_record(0, "26.05.5")), HTTP) is None


def test_nothing_is_said_of_a_slurmd_that_nobody_knows() -> None:
    assert told(V26_05, "") == ""
    assert told(None, "26.05.5") == ""
    assert finding(V24_11, [unready(0)], Unknown("refused"), HTTP) is None


LOG = (
    "slurmctld: Running as primary controller\n"
    "slurmctld: error: unpack_header: protocol_version 11520 not supported\n"
    "slurmctld: error: slurm_unpack_received_msg: [[{0}]:63192] "
    f"{INCOMPATIBLE}\n"
)


@pytest.mark.parametrize("sender", ["compute-0.slurm-workers-slurm.slurm.svc", "compute-0"])
def test_slurmctlds_log_names_the_worker_whose_release_it_does_not_accept(sender: str) -> None:
    assert is_release_rejected(unready(0), LOG.format(sender))
    assert is_release_rejected(
        unready(0), LOG.format(sender).replace("slurmctld:", "[2026-11-24T13:19]")
    )
    assert not is_release_rejected(unready(1), LOG.format(sender))


def test_words_in_a_job_name_are_not_slurmctlds() -> None:
    log = f"slurmctld: sched: JobName={LOG.format('compute-0').splitlines()[-1]}"
    assert not is_release_rejected(unready(0), log)
    assert not is_release_rejected(unready(0), "")


def test_a_slurmd_that_slurmctld_does_not_accept_is_told_with_what_it_accepts() -> None:
    found = release_finding("compute-0", V24_11, TCP)
    assert (found.ok, found.reason) == (False, REASON)
    assert "slurmd of compute-0 (image mine/slurmd:blue) cannot register" in found.message
    assert "slurmctld 24.11 works with slurmd 23.02 to 24.11" in found.message
    assert found.message.endswith("and delete pod compute-0")
    assert (
        "its own release and the three before it" in release_finding("compute-0", None, TCP).message
    )


def test_the_record_of_a_former_slurmd_says_nothing_of_the_one_that_starts() -> None:
    """A worker whose image was changed has not registered with it yet."""
    former = _record(0, "24.05.3", NOW - 7200)
    assert finding(V26_05, [unready(0)], known_nodes(former), HTTP) is None
