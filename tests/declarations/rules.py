"""Declarations that break the CEL rules of our definitions: one row for each rule of each kind.

`tests/unit/testing/test_declarations.py` holds that no rule is without its row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

from declarations import samples
from declarations.properties import KINDS, laid_over
from penstock.api import crd
from penstock.api.kubernetes.meta import Json

CLAIM: Json = {"metadata": {"name": "sample"}, "spec": {}}
_OTHER: Json = {"name": "other", "key": "other"}


@dataclass(frozen=True, slots=True)
class Breach:
    """A change of a kind's spec that a rule forbids; null takes a field away.

    With `before` the rule is about the change from that spec, else about the state itself.
    """

    kind: str
    words: str
    """How the rule's message begins."""
    change: Json
    before: Json | None = None

    @property
    def specs(self) -> tuple[Json | None, Json]:
        """The spec that stands before, if it matters, and the one that is rejected."""
        base = samples.BASE[self.kind]
        if self.before is None:
            return None, laid_over(base, self.change)
        first = laid_over(base, self.before)
        return first, laid_over(first, self.change)


_HOST: Json = {"template": {"spec": {"hostNetwork": True}}}
_NAMELESS: Json = {"controllerRef": {"name": ""}}
_ANOTHER: Json = {"controllerRef": {"name": "other"}}
_JWT = "jwtKeyRef is immutable"
_TWO_KEYS = "slurmKeyRef is for auth/slurm"
BREACHES: tuple[Breach, ...] = (
    Breach("Controller", "clusterName is immutable", {"clusterName": "other"}, {}),
    Breach("Controller", "slurmKeyRef is immutable", {"slurmKeyRef": _OTHER}, {}),
    Breach("Controller", _JWT, {"jwtKeyRef": _OTHER}, {}),
    Breach("Controller", "mungeKeyRef is immutable", {"mungeKeyRef": _OTHER}, {}),
    Breach("Controller", _TWO_KEYS, {"slurmKeyRef": _OTHER, "mungeKeyRef": _OTHER}),
    Breach("Controller", "externalConfig must be set", {"external": True}),
    Breach("Controller", "slurm high availability (HA) mode", {"ha": {"enabled": True}}),
    Breach(
        "Controller", "persistence.enabled is immutable", {"persistence": {"enabled": True}}, {}
    ),
    Breach(
        "Controller",
        "persistence.existingClaim is immutable",
        {"persistence": {"existingClaim": "other"}},
        {"persistence": {"enabled": True, "existingClaim": "state"}},
    ),
    Breach("Controller", "hostNetwork is not offered", _HOST),
    Breach("Controller", "sssdConfRef.name must not be empty", {"sssdConfRef": {"key": "k"}}),
    Breach("NodeSet", "controllerRef.name must not be empty", _NAMELESS),
    Breach("NodeSet", "controllerRef is immutable", _ANOTHER, {}),
    Breach("NodeSet", "volumeClaimTemplates is immutable", {"volumeClaimTemplates": [CLAIM]}, {}),
    Breach("NodeSet", "extraConf must be Key=Value words", {"extraConf": "Weight"}),
    Breach(
        "NodeSet",
        "sssdConfRef.name must not be empty",
        {"ssh": {"enabled": True, "sssdConfRef": {"key": "sssd.conf"}}},
    ),
    Breach(
        "NodeSet",
        "scheduledUpdate.startTime and scheduledUpdate.duration",
        {"updateStrategy": {"type": "ScheduledUpdate"}},
    ),
    *(
        Breach(
            "NodeSet",
            "maxUnavailable must be a number",
            {"updateStrategy": {"rollingUpdate": {"maxUnavailable": most}}},
        )
        for most in (0, -1, "0%", "000%", "-5%", "some", "5", "")
    ),
    *(
        Breach(
            "NodeSet",
            "scheduledUpdate.duration must be at least",
            {"updateStrategy": {"scheduledUpdate": {"duration": length}}},
        )
        for length in ("59s", "-1h", "0")
    ),
    Breach("LoginSet", "sssdConfRef.name must not be empty", {"sssdConfRef": {"key": "k"}}),
    Breach("LoginSet", "controllerRef.name must not be empty", _NAMELESS),
    Breach("LoginSet", "controllerRef is immutable", _ANOTHER, {}),
    Breach("RestApi", "controllerRef.name must not be empty", _NAMELESS),
    Breach("Accounting", "slurmKeyRef or mungeKeyRef must be set", {"slurmKeyRef": None}),
    Breach("Accounting", _TWO_KEYS, {"mungeKeyRef": _OTHER}),
    Breach(
        "Accounting",
        "mungeKeyRef is immutable",
        {"mungeKeyRef": None, "slurmKeyRef": _OTHER},
        {"mungeKeyRef": _OTHER, "slurmKeyRef": None},
    ),
    Breach("Accounting", "jwtKeyRef or jwtHs256KeyRef must be set", {"jwtKeyRef": None}),
    Breach("Accounting", "externalConfig must be set", {"external": True}),
    Breach("Accounting", _JWT, {"jwtKeyRef": _OTHER}, {}),
    Breach("Accounting", "hostNetwork is not offered", _HOST),
    Breach("Token", "jwtKeyRef or jwtHs256KeyRef must be set", {"jwtKeyRef": None}),
    Breach("Token", _JWT, {"jwtKeyRef": _OTHER}, {}),
    Breach("Partition", "controllerRef.name must not be empty", _NAMELESS),
    Breach("Partition", "controllerRef is immutable", _ANOTHER, {}),
    Breach("Partition", "DEFAULT is no partition", {"name": "Default"}),
    Breach("Partition", "must be minutes, minutes:seconds", {"maxTime": "banana"}),
    Breach("Partition", "must be a number of at least 0", {"maxNodes": "many"}),
    Breach("Partition", "extra has a key for which", {"extra": {"MAXTIME": "1"}}),
    Breach("Partition", "keys of extra must be keys", {"extra": {"Max Time": "1"}}),
    *(
        Breach("Partition", f"{one} and {other} exclude", {one: value, other: value})
        for one, other, value in (
            ("defMemPerCpu", "defMemPerNode", 1),
            ("maxMemPerCpu", "maxMemPerNode", 1),
            ("allowAccounts", "denyAccounts", ["a"]),
            ("allowQos", "denyQos", ["a"]),
        )
    ),
)


@cache
def messages() -> set[tuple[str, str]]:
    """Kind and message of each CEL rule of our definitions."""
    return {
        (info.resource.kind, message) for info in KINDS for message in _messages(crd.schema(info))
    }


def _messages(schema: Any) -> Iterator[str]:
    if isinstance(schema, list):
        for one in cast("list[Any]", schema):
            yield from _messages(one)
    if not isinstance(schema, dict):
        return
    for key, value in cast("Json", schema).items():
        if key == "x-kubernetes-validations":
            yield from (one["message"] for one in value)
        else:
            yield from _messages(value)
