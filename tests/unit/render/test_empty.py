"""Empty fields mean absent ones, but for those that say something."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from penstock.api.kubernetes.meta import Json
from penstock.render.parts import empty_values as empty
from penstock.render.parts import merge
from penstock.render.parts.digest import canonical_json

BASE: Json = {"containers": [{"name": "a", "image": "i"}], "tolerations": [{"key": "ours"}]}
HOLLOW: Json = {
    "affinity": {"nodeAffinity": {}},
    "imagePullSecrets": None,
    "initContainers": [],
    "priorityClassName": "",
    "resources": {},
    "tolerations": [],
    "dnsConfig": {"searches": []},
}


def test_a_pod_with_empty_fields_is_byte_for_byte_one_without_them() -> None:
    said: Json = {"nodeSelector": {"kubernetes.io/os": "linux"}, "hostNetwork": False}
    plain = merge.pod_spec(BASE, said)
    assert canonical_json(merge.pod_spec(BASE, said | HOLLOW)) == canonical_json(plain)
    assert plain["hostNetwork"] is False


def test_a_container_with_empty_fields_is_byte_for_byte_one_without_them() -> None:
    wish: Json = {"args": [], "env": [], "resources": {"limits": {}}, "livenessProbe": {}}
    wish |= {"securityContext": {"capabilities": {}}, "lifecycle": {"preStop": {}}}
    base: Json = {"name": "a", "image": "i"}
    assert merge.container(base, wish) == base
    assert merge.container(base, {"securityContext": {"runAsUser": 0}})["securityContext"] == {
        "runAsUser": 0
    }


def test_an_empty_value_that_takes_something_of_ours_away_is_a_value() -> None:
    base: Json = {"command": ["sh"], "securityContext": {"capabilities": {"add": ["SYS_NICE"]}}}
    wish: Json = {"command": [], "securityContext": {"capabilities": {"add": []}}}
    assert merge.container(base, wish) == wish


SAYS_SOMETHING: list[Json] = [
    {"volumes": [{"name": "x", "emptyDir": {}}]},
    {"nodeSelector": {"node-role.kubernetes.io/worker": ""}},
    {"topologySpreadConstraints": [{"labelSelector": {}}]},
    {"volumes": [{"name": "x", "ephemeral": {"spec": {"storageClassName": ""}}}]},
]


@pytest.mark.parametrize("spec", SAYS_SOMETHING)
def test_empty_values_with_a_meaning_stay(spec: Json) -> None:
    assert merge.pod_spec({}, spec) == spec


LIVE: list[tuple[Json, Json]] = [
    ({"resources": {}}, {"resources": {}}),
    ({"securityContext": {"capabilities": {}}}, {"securityContext": {"capabilities": {}}}),
    ({"nodeSelector": {"a": "b"}}, {}),
    ({"volumes": [{"name": "v", "emptyDir": {}}]}, {}),
]


@pytest.mark.parametrize(("live", "kept"), LIVE)
def test_only_values_without_meaning_are_kept_of_a_live_template(live: Json, kept: Json) -> None:
    wanted: Json = {"hostNetwork": True}
    assert empty.spelt_as(copy.deepcopy(wanted), live) == wanted | kept


def test_a_volume_keeps_its_new_source_only() -> None:
    wanted: Any = {"volumes": [{"name": "v", "hostPath": {"path": "/x"}}]}
    assert empty.spelt_as(wanted, {"volumes": [{"name": "v", "emptyDir": {}}]}) == wanted


def test_a_container_is_not_given_the_empty_fields_of_another_one() -> None:
    wanted: Any = {"containers": [{"name": "new"}]}
    live: Json = {"containers": [{"name": "old", "securityContext": {}}]}
    assert empty.spelt_as(wanted, live) == wanted
