"""Whether the rebooter runs its command now: once for each boot, and only when it is allowed.

The operator allows it once no worker is on the node (`penstock.decide.node_outage`).
"""

from __future__ import annotations

from collections.abc import Mapping

from penstock.model import node_mark
from penstock.model.node_mark import Purpose, Step


def may_reboot(annotations: Mapping[str, str], boot: str, *, is_requested: bool) -> bool:
    """Whether to reboot a node with these annotations, which runs since this boot.

    One with the annotation `reboot-started` of this boot has run its command: whether the node goes
    down is then for a person to see. `is_requested` is whether the condition still asks for it.
    """
    mark = node_mark.read(annotations)
    if mark is None or not boot or not is_requested:
        return False
    allowed = mark.purpose is Purpose.REBOOT and mark.step is Step.REBOOT
    return allowed and mark.boot == boot and annotations.get(node_mark.REBOOT_STARTED) != boot
