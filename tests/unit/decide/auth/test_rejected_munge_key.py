"""S111: which workers have another munge key than slurmctld, and between which Secrets."""

from __future__ import annotations

import msgspec
import pytest

from penstock.api.kubernetes.kinds import Pod
from penstock.api.kubernetes.meta import Json
from penstock.api.kubernetes.spec_parts import SecretKeySelector
from penstock.decide.auth import rejected_munge_key
from penstock.decide.auth.rejected_key import KeyRejection
from penstock.slurm.known import Known, Unknown
from penstock.slurm.state import Node

STARTED = "2027-01-15T07:59:50Z"
STARTED_AT = 1_799_999_990
OURS = SecretKeySelector(name="blue-munge", key="munge.key")
OTHER = SecretKeySelector(name="other", key="key")
LOG = """\
slurmd: error: Munge decode failed: Invalid credential
slurmd: error: slurm_receive_msg: Protocol authentication error
"""


def worker(name: str, *, runs: bool = True, deleting: bool = False) -> Pod:
    state: Json = {"running": {"startedAt": STARTED}} if runs else {"waiting": {}}
    status: Json = {
        "conditions": [{"type": "Ready", "status": "True"}],
        "containerStatuses": [{"name": "slurmd", "state": state}],
    }
    meta: Json = {"name": name, "namespace": "a"}
    if deleting:
        meta["deletionTimestamp"] = STARTED
    return msgspec.convert({"metadata": meta, "status": status}, Pod)


@pytest.mark.parametrize(
    ("nodes", "found"),
    [
        ({}, ["worker-0"]),
        ({"worker-0": Node(name="worker-0", slurmd_start_time=STARTED_AT + 2)}, []),
        ({"worker-0": Node(name="worker-0", slurmd_start_time=STARTED_AT - 600)}, ["worker-0"]),
        (
            {
                "worker-0": Node(
                    name="worker-0",
                    state=frozenset({"NOT_RESPONDING"}),
                    slurmd_start_time=STARTED_AT + 2,
                )
            },
            ["worker-0"],
        ),
    ],
)
def test_a_worker_is_in_doubt_until_its_slurmd_is_registered(
    nodes: dict[str, Node], found: list[str]
) -> None:
    pods = [worker("worker-0"), worker("worker-1", runs=False), worker("worker-2", deleting=True)]
    unregistered = rejected_munge_key.unregistered(pods, Known(nodes, 0.0))
    assert [pod.metadata.name for pod in unregistered] == found
    assert rejected_munge_key.unregistered(pods, Unknown("silent")) == []
    assert rejected_munge_key.late(unregistered, STARTED_AT + 14.0) == []
    assert rejected_munge_key.late(unregistered, STARTED_AT + 15.0) == unregistered


def test_only_munges_words_are_a_rejection() -> None:
    pod = worker("worker-0")
    found = rejected_munge_key.find_rejection(pod, LOG)
    assert found == KeyRejection("worker-0", "Invalid credential")
    for log in ("", "slurmd: error: Unable to register: Unable to contact slurm controller"):
        assert rejected_munge_key.find_rejection(pod, log) is None


def test_the_secret_of_munged_is_found_through_the_pods_mounts() -> None:
    mount: Json = {"name": "munge-key", "mountPath": "/mnt/munge-key"}
    items = [{"key": "k", "path": "munge.key"}]
    pod: Json = {
        "spec": {
            "initContainers": [{"name": "munge", "volumeMounts": [mount]}],
            "containers": [{"name": "slurmd", "volumeMounts": []}],
            "volumes": [{"name": "munge-key", "secret": {"secretName": "other", "items": items}}],
        }
    }
    found = rejected_munge_key.source_of(pod)
    assert found is not None
    assert (found.name, found.key) == ("other", "k")
    pod["spec"]["volumes"][0] = {"name": "munge-key", "emptyDir": {}}
    assert rejected_munge_key.source_of(pod) is None


def test_the_worker_and_both_secrets_are_named() -> None:
    rejected = KeyRejection("worker-2", "Invalid credential")
    found = rejected_munge_key.finding(rejected, OTHER, OURS)
    assert (found.ok, found.reason) == (False, "KeyDiffers")
    for words in ("worker-2", "munge.key of Secret blue-munge", "key of Secret other"):
        assert words in found.message
    assert "Have worker-2 mount key" in rejected_munge_key.finding(rejected, None, OURS).message
    same = rejected_munge_key.finding(rejected, OURS, OURS).message
    assert "which was changed: delete pod" in same
    assert "delete pod worker-2" in same
