"""What jobs with containers lack on a worker that is not privileged."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.api.kubernetes.conditions import conditions, find
from penstock.api.kubernetes.meta import Json
from penstock.decide.advice.container_rights import LIMITED, finding, has_enroot, missing

PYXIS = "ghcr.io/slinkyproject/slurmd-pyxis:26.05-ubuntu26.04"


def container(**context: Any) -> Json:
    return {"image": PYXIS, "securityContext": context}


@pytest.mark.parametrize(
    ("slurmd", "said"),
    [
        ({"image": PYXIS}, True),
        ({"image": "registry:5000/site/slurmd-enroot@sha256:0123"}, True),
        ({"image": "ghcr.io/slinkyproject/slurmd:26.05"}, False),
        ({"image": "pyxis.example.org/slurmd:pyxis"}, False),
        ({"image": "slurmd", "volumeMounts": [{"mountPath": "/var/cache/enroot"}]}, True),
        ({"image": "slurmd", "volumeMounts": [{"mountPath": "/data/enrooted"}]}, False),
    ],
)
def test_enroot_is_known_by_the_image_or_by_a_mount(slurmd: Json, said: bool) -> None:
    assert has_enroot(slurmd) is said


def test_a_privileged_worker_lacks_nothing() -> None:
    assert missing(container(privileged=True, capabilities={"add": []}), {}) == []


def test_each_right_that_is_not_given_is_named() -> None:
    """S045."""
    context = {
        "privileged": False,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
        "allowPrivilegeEscalation": False,
    }
    named = [one.split()[0] for one in missing(container(**context), {})]
    assert named == ["capability", "seccompProfile", "appArmorProfile", "allowPrivilegeEscalation"]


@pytest.mark.parametrize("name", ["SYS_ADMIN", "CAP_SYS_ADMIN", "ALL"])
def test_less_than_privileged_is_enough_when_all_of_it_is_listed(name: str) -> None:
    unconfined = {"securityContext": {"appArmorProfile": {"type": "Unconfined"}}}
    given = container(privileged=False, capabilities={"add": [name]})
    assert missing(given, unconfined) == []
    assert [one.split()[0] for one in missing(given, {})] == ["appArmorProfile"]


def test_it_is_a_condition_of_its_own_and_the_nodeset_stays_ready() -> None:
    """S045: nothing is wrong with the workers themselves."""
    told = finding(container(privileged=False), {}, ())
    assert told is not None
    shown = conditions([told])
    ready, limited = find(shown, "Ready"), find(shown, LIMITED)
    assert ready is not None
    assert ready.status == "True"
    assert limited is not None
    assert (limited.status, limited.reason) == ("True", "RightsMissing")
    assert "SYS_ADMIN" in limited.message


def test_it_is_taken_back_once_the_rights_are_given_or_enroot_is_gone() -> None:
    told = finding(container(privileged=False), {}, ())
    assert told is not None
    before = conditions([told])
    for slurmd in (container(privileged=True), {"image": "slurmd:26.05"}):
        now = finding(slurmd, {}, before)
        assert now is not None
        limited = find(conditions([now]), LIMITED)
        assert limited is not None
        assert limited.status == "False"


def test_workers_without_enroot_are_told_nothing() -> None:
    assert (
        finding({"image": "slurmd:26.05", "securityContext": {"privileged": False}}, {}, ()) is None
    )
