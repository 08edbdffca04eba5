"""The reference of an object to the Slurm cluster that it belongs to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Final

from penstock.api.kubernetes.meta import KubeStruct
from penstock.api.kubernetes.resource import ObjectKey
from penstock.api.kubernetes.schema import (
    DEFAULT,
    about,
    rule,
)

CONTROLLER: Final = ("slinky.slurm.net", "Controller")
"""Group and kind of the object that a ControllerRef names."""


class ControllerRef(KubeStruct, frozen=True):
    """The Controller, that is the Slurm cluster, to which an object belongs."""

    name: Annotated[str, about("Name of the Controller.", {DEFAULT: "", "maxLength": 253})] = ""
    namespace: Annotated[
        str,
        about(
            "Namespace of the Controller. Empty means the object's own; the own one by name means "
            "the same.",
            {"maxLength": 63},
        ),
    ] = ""


NON_EMPTY_REF = rule("self.name != ''", "controllerRef.name must not be empty")
FIXED_REF = rule(
    # `namespace` is a reserved word of CEL.
    "self.name == oldSelf.name && (!has(self.__namespace__) || !has(oldSelf.__namespace__) "
    "|| self.__namespace__ == oldSelf.__namespace__)",
    "controllerRef is immutable: delete the object and create it again for another Controller",
)


def controller_key(ref: ControllerRef, namespace: str) -> tuple[ObjectKey, ...]:
    """The Controller that an object of a namespace belongs to, whether that exists or not.

    None for a Controller of another namespace: a name in a reference is no right to its keys, its
    configuration or its nodes.
    """
    if ref.namespace not in ("", namespace):
        return ()
    return (ObjectKey(*CONTROLLER, namespace, ref.name),)


def controller_ref_problems(ref: ControllerRef, namespace: str) -> Iterator[tuple[str, str]]:
    """Path and what to write instead, for each fault of the reference of an object."""
    if not ref.name:
        yield "spec.controllerRef.name", "must not be empty"
    if ref.namespace not in ("", namespace):
        yield (
            "spec.controllerRef.namespace",
            f"nothing grants the use of a Controller of namespace {ref.namespace!r}: name a "
            f"Controller of namespace {namespace!r}, or put this object there",
        )
