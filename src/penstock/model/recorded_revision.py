"""What a ControllerRevision records of a worker set, in the words of no API."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from penstock.api.kubernetes.meta import Json


@dataclass(frozen=True, slots=True)
class RecordedRevision:
    """A template of a worker set: the current one, or one that a ControllerRevision records.

    `name`, `uid` and `number` are those of the ControllerRevision; `uid` is empty and `number` 0
    for one that is not recorded. `hash` is the value of the revision label of its pods, and
    `equal_hashes` are those of the same meaning, as noted at the record. `parameters` are the
    `Key=Value` words of its nodes in slurm.conf. `fixed_form` is equal for templates that differ at
    most in parameters that change in Slurm itself. Only a rollback calls `read_form` and
    `read_spec`, which take longer.
    """

    name: str
    uid: str
    number: int
    hash: str
    equal_hashes: tuple[str, ...]
    parameters: str
    fixed_form: bytes
    read_form: Callable[[], bytes]
    """Returns what is equal for templates of one and the same pod, whoever wrote them."""
    read_spec: Callable[[], Json | None]
    """Returns the recorded fields as the API declares them; None where no template is recorded."""
