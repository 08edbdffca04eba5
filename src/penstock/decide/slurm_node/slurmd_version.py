"""Workers whose slurmd is of a release that slurmctld, or their pod's probes, cannot work with.

The tag of an image need not name its release. slurmd reports the release when it registers. When
slurmctld rejects the release, only its own log shows that: slurmd logs an authentication error.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.kinds import Pod
from penstock.api.kubernetes.meta import Json
from penstock.base.text import list_some
from penstock.catalog.reasons.slurm_nodes import SlurmNodeReason
from penstock.decide.observed.pod import SKEW_S, slurm_node_name, slurmd_started_at
from penstock.slurm.known import Fact, Known
from penstock.slurm.state import Node
from penstock.slurm.versions import PROBES_SINCE, Version, oldest_beside, parse

REASON = SlurmNodeReason.VERSION_UNSUPPORTED
INCOMPATIBLE = "Incompatible versions of client and server code"
"""slurmctld's words of a protocol that it does not know. Source: slurm_errno.h, 1005."""
_REJECTED = re.compile(
    r"^(?:slurmctld: |\[[^\]\s]*\] )?error: slurm_unpack_received_msg: "
    rf"\[{{1,2}}([^\[\]]+)\]:\d+\]? {INCOMPATIBLE}",
    re.MULTILINE,
)
"""The line of slurmctld's log, with the sender. Seen with slurmctld 24.11.5 and slurmd 26.05.5."""


def finding(
    slurmctld: Version | None,
    pods: Sequence[Pod],
    nodes: Fact[Mapping[str, Node]],
    slurmd: Json,
) -> Finding | None:
    """Return the condition for the releases that the slurmds of a NodeSet reported.

    `slurmctld` is the release that serves, `slurmd` the rendered container of the pods.
    """
    if not isinstance(nodes, Known):
        return None
    # Thousands of nodes have a handful of releases, and nearly always none of them is a problem.
    texts = {node.version for node in nodes.value.values()}
    releases = {text: found for text in texts if (found := parse(text)) is not None}
    if slurmctld is not None:
        oldest = oldest_beside(slurmctld)
        unsupported = {text for text, one in releases.items() if not oldest <= one <= slurmctld}
        if wrong := _reported(pods, nodes.value, unsupported):
            names = [pod.metadata.name for pod, _ in wrong]
            has = f"slurmd {releases[wrong[0][1]]} ({list_some(names)})"
            return Finding(False, REASON, f"{len(names)} pods have {has}: {_range(slurmctld)}")
    silent = {text for text, one in releases.items() if one < PROBES_SINCE}
    late = [(pod, text) for pod, text in _reported(pods, nodes.value, silent) if not pod.ready]
    if not late or not _asks_http(slurmd):
        return None
    has, names = releases[late[0][1]], [pod.metadata.name for pod, _ in late]
    return Finding(
        False,
        REASON,
        f"{len(names)} pods cannot become ready ({list_some(names)}): slurmd {has} answers no "
        f"HTTP probe, and the tag of {_image(slurmd)} does not begin with {has}. Give the image "
        "such a tag, or set tcpSocket probes in spec.slurmd",
    )


def is_release_rejected(pod: Pod, log: str) -> bool:
    """Return whether slurmctld's log shows that it rejected the release of a worker's slurmd."""
    names = {pod.host, pod.status.pod_ip}
    return any(
        sender in names or sender.partition(".")[0] in names for sender in _REJECTED.findall(log)
    )


def release_finding(pod: str, slurmctld: Version | None, slurmd: Json) -> Finding:
    """Return the condition of a worker whose release slurmctld rejects.

    Its slurmd runs and Slurm does not have its node, so the operator does not delete the pod.
    """
    message = (
        f"slurmd of {pod} ({_image(slurmd)}) cannot register, slurmctld reports: {INCOMPATIBLE}"
    )
    return Finding(False, REASON, f"{message}. {_range(slurmctld)}, and delete pod {pod}")


def _range(slurmctld: Version | None) -> str:
    """Which slurmd a slurmctld works with, and what to do."""
    advice = "set spec.slurmd.image to one of these"
    if slurmctld is None:
        return f"slurmctld works with slurmd of its own release and the three before it: {advice}"
    works = f"slurmctld {slurmctld} works with slurmd {oldest_beside(slurmctld)} to {slurmctld}"
    return f"{works}: {advice}"


def _reported(
    pods: Sequence[Pod], nodes: Mapping[str, Node], texts: Collection[str]
) -> list[tuple[Pod, str]]:
    """The pods whose running slurmd registered with one of these version texts, each with it."""
    if not texts:
        return []
    found = ((pod, nodes.get(slurm_node_name(pod))) for pod in pods)
    return [
        (pod, node.version)
        for pod, node in found
        if node is not None and node.version in texts
        if not pod.metadata.deleting and _is_of(node, pod)
    ]


def _is_of(node: Node, pod: Pod) -> bool:
    """Whether the slurmd that runs in the pod has registered, and not only one before it."""
    began = slurmd_started_at(pod)
    return began is not None and node.slurmd_start_time >= began - SKEW_S


def _asks_http(slurmd: Json) -> bool:
    probes: list[Json] = [slurmd.get(key) or {} for key in ("startupProbe", "readinessProbe")]
    return any("httpGet" in one for one in probes)


def _image(slurmd: Json) -> str:
    return f"image {slurmd.get('image') or 'of slurmd'}"
