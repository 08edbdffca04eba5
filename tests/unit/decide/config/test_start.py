"""Whether files are to blame when slurmctld does not come up."""

from __future__ import annotations

import msgspec
import pytest

from penstock.api.cluster.marks import CONFIG_DELIVERED_TO, CONFIG_HASH
from penstock.api.kubernetes.kinds import Pod
from penstock.api.kubernetes.meta import Json
from penstock.decide.config.start import SERVES_S, Start, StartResult, observe

FILES = "new"
RUNNING: Json = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
LOOPS: Json = {"waiting": {"reason": "CrashLoopBackOff"}}
ENDED: Json = {"terminated": {"exitCode": 1, "message": "fatal: no"}}


def pod(restarts: int, delivered_to: str | None, state: Json = RUNNING) -> Pod:
    """Slurmctld's pod, whose files were delivered to the process of that restart count."""
    annotations = {CONFIG_HASH: FILES}
    if delivered_to is not None:
        annotations[CONFIG_DELIVERED_TO] = delivered_to
    container: Json = {"name": "slurmctld", "restartCount": restarts, "state": state}
    if state is LOOPS:
        container["lastState"] = ENDED
    return msgspec.convert(
        {
            "metadata": {"name": "c-0", "namespace": "n", "uid": "u", "annotations": annotations},
            "status": {"containerStatuses": [container]},
        },
        Pod,
    )


def after(seconds: float, found: Pod, before: Start | None = None) -> StartResult:
    """The judgement so long after it was first seen."""
    first = observe(before, found, FILES, node_ready=True, now=0.0)
    return observe(first.start, found, FILES, node_ready=True, now=seconds)


@pytest.mark.parametrize(
    ("restarts", "delivered_to"),
    [(0, None), (1, "0"), (0, "no count"), (0, "9" * 5000)],
    ids=["new pod", "later process", "no count", "too long a count"],
)
def test_files_are_blamed_for_a_silent_process_that_was_started_with_them(
    restarts: int, delivered_to: str | None
) -> None:
    found = pod(restarts, delivered_to)
    assert not after(SERVES_S - 1, found).down
    late = after(SERVES_S, found)
    assert "does not answer" in late.down
    assert not late.hung


def test_files_are_not_blamed_for_a_process_that_was_started_before_their_delivery() -> None:
    late = after(SERVES_S, pod(2, "2"))
    assert not late.down
    assert "started with earlier files" in late.hung
    assert after(SERVES_S, pod(2, "2", LOOPS)).down == ""


def test_a_process_that_ends_on_its_files_is_known_at_once() -> None:
    assert after(0.0, pod(3, "2", LOOPS)).down == "fatal: no"


def test_the_clock_begins_again_with_the_first_process_that_has_the_files() -> None:
    older = after(SERVES_S, pod(0, "0"))
    began = observe(older.start, pod(1, "0"), FILES, node_ready=True, now=SERVES_S)
    assert (began.down, began.hung) == ("", "")
    assert began.start == Start("u", FILES, is_older=False, since=SERVES_S)


def test_a_kubernetes_node_that_is_not_ready_proves_nothing() -> None:
    assert observe(None, pod(0, None), FILES, node_ready=False, now=0.0) == StartResult()
    assert observe(None, pod(0, None), "others", node_ready=True, now=0.0) == StartResult()
