"""All API groups that the operator serves, and the rules of their kinds.

A group adds itself to `groups`; nothing else names the kinds of all groups. Those of
`slurm.nebius.ai`, and those of `penstock.dev` about them, are imported when they are first asked
for: a process that leads another group starts without them.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from typing import Any, TypeVar

from penstock.api.admission import ApiGroup, KindRules, Problem, Registry
from penstock.api.kubernetes.meta import KubeObject
from penstock.api.kubernetes.resource import Resource
from penstock.api.penstock import group as penstock
from penstock.api.slinky import group as slinky

T = TypeVar("T", bound=KubeObject)

_IMPORTED = (slinky.GROUP, penstock.GROUP)
_RULES = Registry(_IMPORTED)


@cache
def groups() -> tuple[ApiGroup, ...]:
    """All groups."""
    from penstock.api.nebius.group import GROUPS
    from penstock.api.penstock import backup_group

    return (slinky.GROUP, *GROUPS, penstock.GROUP, backup_group.GROUP)


@cache
def registry() -> Registry:
    """The rules of all kinds.

    Its `kinds` are typed Python: fields, defaults, validation. CRD YAML is generated from them.
    """
    return Registry(groups())


def groups_beside(apis: Collection[str]) -> tuple[ApiGroup, ...]:
    """The groups that a process serves which leads these, and `penstock.dev` beside them."""
    every = _IMPORTED if {one.name for one in _IMPORTED}.issuperset(apis) else groups()
    return tuple(one for one in every if one.name in apis or one.name == penstock.GROUP.name)


def _registry_of(obj: KubeObject) -> Registry:
    return _RULES if _RULES.has(obj) else registry()


def rules_of(obj: T) -> KindRules[T]:
    """The rules of an object's kind, by its type. Raises TypeError for a kind of no group."""
    return _registry_of(obj).of(obj)


def resource_of(obj: KubeObject) -> Resource[Any]:
    """The resource of an object; items of a list may come without their kind."""
    return rules_of(obj).info.resource


def problems(obj: KubeObject) -> list[Problem]:
    """Faults that keep the operator from making what the object asks for."""
    return _registry_of(obj).problems(obj)


def unsupported_fields(obj: KubeObject) -> list[str]:
    """`path: what happens instead` for each field in use that this version does not serve."""
    return list(rules_of(obj).unsupported_fields(obj))
