"""What a ControllerRevision records of a worker set, in the words of no API."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.api.kubernetes.meta import Json


@dataclass(frozen=True, slots=True)
class RecordedRevision:
    """A template of a worker set: the current one, or one that a ControllerRevision records.

    `name`, `uid` and `number` are those of the ControllerRevision; `uid` is empty and `number` 0
    for one that is not recorded. `hash` is the value of the revision label of its pods, and
    `equal_hashes` are those of the same meaning, as noted at the record. `parameters` are the
    `Key=Value` words of its nodes in slurm.conf. `form` is equal for templates of one and the same
    pod, whoever wrote them, and `fixed_form` for those that differ in parameters that change in
    Slurm itself only. `spec` are the recorded fields as the API declares them; None where no
    template is recorded.
    """

    name: str
    uid: str
    number: int
    hash: str
    equal_hashes: tuple[str, ...]
    parameters: str
    form: bytes
    fixed_form: bytes
    spec: Json | None
