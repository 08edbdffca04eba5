"""S061: whose key differs, and between which Secrets."""

from __future__ import annotations

import msgspec
import pytest

from penstock.api.kubernetes.kinds import Pod
from penstock.api.kubernetes.meta import Json
from penstock.api.kubernetes.spec_parts import SecretKeySelector
from penstock.decide.auth import rejected_key
from penstock.decide.auth.rejected_key import KeyRejection

NOW = 1_800_000_000.0
STARTED = "2027-01-15T07:59:50Z"
"""Ten seconds before."""
OURS = SecretKeySelector(name="slurm-auth-slurm", key="slurm.key")
OTHER = SecretKeySelector(name="other", key="key")
ETC: Json = {"name": "slurm-etc", "mountPath": "/etc/slurm", "readOnly": True}
FILE: Json = {"name": "mine", "mountPath": "/etc/slurm/slurm.key", "subPath": "key"}


def item(name: str, key: str, path: str) -> Json:
    return {"secret": {"name": name, "items": [{"key": key, "path": path}]}}


def pod(mounts: list[Json], *volumes: Json) -> Json:
    slurmd: Json = {"name": "slurmd", "volumeMounts": mounts}
    return {"spec": {"containers": [{"name": "x"}, slurmd], "volumes": list(volumes)}}


def projected(*sources: Json) -> Json:
    return {"name": "slurm-etc", "projected": {"sources": list(sources)}}


@pytest.mark.parametrize(
    ("given", "file", "found"),
    [
        (pod([ETC], projected(item("a", "k", "slurm.key"))), "slurm.key", ("a", "k")),
        (pod([ETC], projected(item("a", "k", "slurm.key"))), "slurm.jwks", None),
        (
            pod([ETC], projected(item("a", "k", "slurm.key"), item("b", "l", "slurm.key"))),
            "slurm.key",
            ("b", "l"),
        ),
        (
            pod([ETC, FILE], projected(item("a", "k", "slurm.key")), {"name": "mine"}),
            "slurm.key",
            None,
        ),
        (
            pod(
                [ETC, FILE],
                projected(item("a", "k", "slurm.key")),
                {"name": "mine", "secret": {"secretName": "b"}},
            ),
            "slurm.key",
            ("b", "key"),
        ),
        (pod([], projected(item("a", "k", "slurm.key"))), "slurm.key", None),
    ],
)
def test_the_secret_of_a_file_is_found_through_the_pods_mounts(
    given: Json, file: str, found: tuple[str, str] | None
) -> None:
    own = rejected_key.source(given, file)
    assert (None if own is None else (own.name, own.key)) == found


def test_the_key_and_both_secrets_are_named() -> None:
    rejected = KeyRejection("compute-0", "Protocol authentication error")
    found = rejected_key.finding(rejected, OTHER, OURS)
    assert (found.ok, found.reason) == (False, "KeyDiffers")
    for words in ("slurm.key", "compute-0", "Secret slurm-auth-slurm", "key of Secret other"):
        assert words in found.message
    assert "Have the worker mount key" in rejected_key.finding(rejected, None, OURS).message
    same = rejected_key.finding(rejected, OURS, OURS).message
    assert "which was changed: restart the one" in same


def worker(started: str | None, *, ready: bool = False) -> Pod:
    state: Json = {"running": {"startedAt": started}} if started else {"waiting": {}}
    container = {"name": "slurmd", "ready": ready, "restartCount": 0, "state": state}
    said = {"type": "Ready", "status": "True" if ready else "False"}
    status = {"conditions": [said], "containerStatuses": [container]}
    return msgspec.convert({"metadata": {"name": "w"}, "spec": {}, "status": status}, Pod)


def test_a_slurmd_is_asked_for_its_reason_when_it_takes_longer_than_a_start() -> None:
    """A worker that starts as others do costs no call."""
    starts, works, waits = worker(STARTED), worker(STARTED, ready=True), worker(None)
    assert rejected_key.late([starts, works, waits], NOW) == []
    assert rejected_key.late_in([starts, works, waits], NOW) == 5
    assert rejected_key.late([starts, works, waits], NOW + 5) == [starts]
    assert rejected_key.late_in([works, waits], NOW) is None


def test_a_slurmd_that_became_late_a_moment_ago_is_not_forgotten() -> None:
    """It was not late yet when the logs to read were chosen."""
    assert rejected_key.late_in([worker(STARTED)], NOW + 6) == 1
    assert rejected_key.late_in([worker(STARTED)], NOW + 30) is None
