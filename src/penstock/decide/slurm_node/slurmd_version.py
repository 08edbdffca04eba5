"""Workers whose slurmd is of a release that slurmctld, or their pod's probes, cannot work with.

The tag of an image need not name its release. slurmd reports the release when it registers; of one
that it does not accept, slurmctld writes so to its log, while slurmd is told of its key only.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.kinds import Pod
from penstock.api.kubernetes.meta import Json
from penstock.base.text import list_some
from penstock.decide.observed.pod import SKEW_S, slurm_node_name, slurmd_started_at
from penstock.slurm.known import Fact, Known
from penstock.slurm.state import Node
from penstock.slurm.versions import PROBES_SINCE, Version, oldest_beside, parse

REASON = "SlurmdVersionUnsupported"
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
    """What a user has to know of the releases that the slurmds of a NodeSet reported.

    `slurmctld` is the release that serves, `slurmd` the container that the pods are made with.
    """
    versions = _reported(pods, nodes)
    if slurmctld is not None:
        oldest = oldest_beside(slurmctld)
        wrong = [pod for pod, found in versions.items() if not oldest <= found <= slurmctld]
        if wrong:
            has = f"slurmd {versions[wrong[0]]} ({list_some(wrong)})"
            return Finding(False, REASON, f"{len(wrong)} pods have {has}: {_range(slurmctld)}")
    late = {pod.metadata.name for pod in pods if not pod.ready}
    silent = [pod for pod, found in versions.items() if found < PROBES_SINCE and pod in late]
    if not silent or not _asks_http(slurmd):
        return None
    has = versions[silent[0]]
    return Finding(
        False,
        REASON,
        f"{len(silent)} pods cannot become ready ({list_some(silent)}): slurmd {has} answers no "
        f"HTTP probe, and the tag of {_image(slurmd)} does not begin with {has}. Give the image "
        "such a tag, or set tcpSocket probes in spec.slurmd",
    )


def is_refused(pod: Pod, log: str) -> bool:
    """Whether slurmctld's log has it that the release of a worker's slurmd is not accepted."""
    names = {pod.host, pod.status.pod_ip}
    return any(
        sender in names or sender.partition(".")[0] in names for sender in _REJECTED.findall(log)
    )


def refused(pod: str, slurmctld: Version | None, slurmd: Json) -> Finding:
    """What is told of a worker of which that holds.

    Its slurmd runs and Slurm does not have its node, so the operator does not delete the pod.
    """
    told = f"slurmd of {pod} ({_image(slurmd)}) cannot register, slurmctld says: {INCOMPATIBLE}"
    return Finding(False, REASON, f"{told}. {_range(slurmctld)}, and delete pod {pod}")


def _range(slurmctld: Version | None) -> str:
    """Which slurmd a slurmctld works with, and what to do."""
    advice = "set spec.slurmd.image to one of these"
    if slurmctld is None:
        return f"slurmctld works with slurmd of its own release and the three before it: {advice}"
    works = f"slurmctld {slurmctld} works with slurmd {oldest_beside(slurmctld)} to {slurmctld}"
    return f"{works}: {advice}"


def _reported(pods: Sequence[Pod], nodes: Fact[Mapping[str, Node]]) -> dict[str, Version]:
    """The releases that slurmctld knows, by pod."""
    found: dict[str, Version] = {}
    if not isinstance(nodes, Known):
        return found
    for pod in pods:
        node = nodes.value.get(slurm_node_name(pod))
        if node is None or pod.metadata.deleting or not _is_of(node, pod):
            continue
        if (version := parse(node.version)) is not None:
            found[pod.metadata.name] = version
    return found


def _is_of(node: Node, pod: Pod) -> bool:
    """Whether the slurmd that runs in the pod has registered, and not only one before it."""
    began = slurmd_started_at(pod)
    return began is not None and node.slurmd_start_time >= began - SKEW_S


def _asks_http(slurmd: Json) -> bool:
    probes: list[Json] = [slurmd.get(key) or {} for key in ("startupProbe", "readinessProbe")]
    return any("httpGet" in one for one in probes)


def _image(slurmd: Json) -> str:
    return f"image {slurmd.get('image') or 'of slurmd'}"
