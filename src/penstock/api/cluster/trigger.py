"""Status of a reconfigure or restart of slurmctld that an annotation requested."""

from __future__ import annotations

from typing import Annotated

from penstock.api.kubernetes.meta import KubeStruct
from penstock.api.kubernetes.schema import about


class Trigger(KubeStruct, frozen=True, kw_only=True):
    """One requested reconfigure or restart, and its result."""

    name: Annotated[str, about("reconfigure or restart.")]
    value: Annotated[str, about("Value of the annotation.")] = ""
    result: Annotated[str, about("`Waiting`, `Done` or `Refused`.")] = ""
    message: Annotated[str, about("What was done, or why not.")] = ""
    time: Annotated[str, about("When this result came.")] = ""
    pods: Annotated[tuple[str, ...], about("Uids of the pods to be replaced.")] = ()
