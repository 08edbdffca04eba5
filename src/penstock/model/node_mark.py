"""The mark of a Kubernetes node that Penstock takes out of service for a while.

It is the annotation `node.penstock.dev/out-of-service`, JSON with the fields of `NodeMark`. The
operator alone writes it, in one patch with the cordon: a cordon without it is a user's. The
rebooter answers with an annotation of its own, `node.penstock.dev/reboot-started`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import msgspec

from penstock.catalog.marks import penstock

OUT_OF_SERVICE: Final = penstock.OUT_OF_SERVICE.key
REBOOT_STARTED: Final = penstock.REBOOT_STARTED.key
REBOOT_DONE: Final = penstock.REBOOT_DONE.key


class Purpose(StrEnum):
    """Why a Kubernetes node is out of service."""

    REBOOT = "reboot"
    DRAIN = "drain"
    MAINTENANCE = "maintenance"
    REPLACE = "replacement"

    @property
    def reason(self) -> str:
        """The reason of drains, which other programs recognize by its beginning."""
        return _REASONS[self]


_REASONS: Final = {
    Purpose.REBOOT: "[compute_maintenance] node reboot process",
    Purpose.DRAIN: "[compute_maintenance] node drain process",
    Purpose.MAINTENANCE: "[compute_maintenance] node replacement process",
    Purpose.REPLACE: "[compute_maintenance] node replacement process",
}


class Step(StrEnum):
    """How far it is: workers leave, then the rebooter may reboot."""

    DRAIN = "drain"
    REBOOT = "reboot"


@dataclass(frozen=True, slots=True)
class NodeMark:
    """One outage. `boot` is the boot ID at its beginning, `since` the time of its step.

    `request` identifies what asks for it: the time of the condition's last transition, or the
    SlurmCluster that has the machine replaced.
    `cordoned` is whether the cordon is Penstock's own.
    """

    purpose: Purpose
    boot: str
    request: str
    since: str
    cordoned: bool
    step: Step = Step.DRAIN

    @property
    def text(self) -> str:
        """The value of the annotation."""
        return msgspec.json.encode(self).decode()


def read(annotations: Mapping[str, str]) -> NodeMark | None:
    """The mark among a node's annotations; None without one, or for one that does not parse."""
    text = annotations.get(OUT_OF_SERVICE)
    if not text:
        return None
    try:
        return msgspec.json.decode(text, type=NodeMark)
    except msgspec.MsgspecError:
        return None
