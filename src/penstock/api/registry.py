"""All API groups that the operator serves, and the rules of their kinds.

A group adds its `ApiGroup` to GROUPS; nothing else names the kinds of all groups.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, TypeVar

from penstock.api.admission import ApiGroup, KindRules, Problem, Registry
from penstock.api.kubernetes.meta import KubeObject
from penstock.api.kubernetes.resource import Resource
from penstock.api.nebius import group as nebius
from penstock.api.penstock import group as penstock
from penstock.api.slinky import group as slinky

T = TypeVar("T", bound=KubeObject)

GROUPS = (slinky.GROUP, *nebius.GROUPS, penstock.GROUP)
REGISTRY = Registry(GROUPS)
KINDS = REGISTRY.kinds
"""The kinds as typed Python: fields, defaults, validation. CRD YAML is generated from them."""


def groups_beside(apis: Collection[str]) -> tuple[ApiGroup, ...]:
    """The groups that a process serves which leads these, and `penstock.dev` beside them."""
    return tuple(one for one in GROUPS if one.name in apis or one is penstock.GROUP)


def rules_of(obj: T) -> KindRules[T]:
    """The rules of an object's kind, by its type. Raises TypeError for a kind of no group."""
    return REGISTRY.of(obj)


def resource_of(obj: KubeObject) -> Resource[Any]:
    """The resource of an object; items of a list may come without their kind."""
    return rules_of(obj).info.resource


def problems(obj: KubeObject) -> list[Problem]:
    """Faults that keep the operator from making what the object asks for."""
    return REGISTRY.problems(obj)


def unsupported_fields(obj: KubeObject) -> list[str]:
    """`path: what happens instead` for each field in use that this version does not serve."""
    return list(rules_of(obj).unsupported_fields(obj))
