"""Labels of a chart's release on pods."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.api.kubernetes.kinds import Pod


def changes(pod: Pod, wanted: Mapping[str, str]) -> dict[str, str]:
    """The labels that one pod is to be given.

    One that its object no longer has stays on the pod: it may be somebody else's by now.
    """
    has = pod.metadata.labels
    return {key: value for key, value in wanted.items() if has.get(key) != value}
