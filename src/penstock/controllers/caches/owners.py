"""The owner of an object as the value of an index: its API group, kind and uid."""

from __future__ import annotations

from typing import Any

from penstock.api.kubernetes.meta import KubeObject
from penstock.api.kubernetes.resource import Resource


def owned_by(resource: Resource[Any], owner: KubeObject) -> str:
    """The value under which an index has the objects that this one controls."""
    return _value(resource.group, resource.kind, owner.metadata.uid)


def owned_by_kind(api_version: str, kind: str, uid: str) -> str:
    """The same by what an owner reference has; another version of the API counts the same."""
    return _value(api_version.rpartition("/")[0], kind, uid)


def controlling_owner(obj: KubeObject) -> list[str]:
    """For indexes: the controlling owner of an object, if there is one."""
    owner = obj.metadata.controller
    return [owned_by_kind(owner.api_version, owner.kind, owner.uid)] if owner is not None else []


def _value(group: str, kind: str, uid: str) -> str:
    return f"{group}/{kind}/{uid}"
