"""Whether the three places in which GPUs are declared agree: the pod, Gres and gres.conf.

The pod's resources define how many devices a container gets, Gres of the node how many jobs may
request, gres.conf which device files these are. Nothing else compares them: with too few files
slurmctld drains the node, with too many devices some are never used.

Sources: slurm.conf(5), GresTypes and Gres; gres.conf(5), AutoDetect, Count, File, MultipleFiles,
Name, NodeName; Kubernetes documentation, "Schedule GPUs", and NVIDIA's names of MIG devices.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from penstock.api.kubernetes.conditions import Finding, find
from penstock.api.kubernetes.meta import Condition
from penstock.catalog.condition_type import ConditionType
from penstock.catalog.reasons.slurm_nodes import SlurmNodeReason
from penstock.slurm import hostlist
from penstock.slurm.conf.document import Document
from penstock.slurm.gres import counts

MISMATCH = ConditionType.GRES_MISMATCH
"""The condition's type."""
GPU = "gpu"
LONGEST_CONF = 131_072
"""Characters of a gres.conf that is read; it is read in each reconcile."""
_COUNT = re.compile("[0-9]{1,18}")
_DEVICE = re.compile(r"[\w.-]+/(gpu|gpu\.shared|mig-[\w.]+|i915|xe)")
"""Names of resources that are GPUs or parts of them."""

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class GpuSpec:
    """The three declarations of GPUs for one node.

    `gres_conf` is None when its content is not known or there is none, `types` (GresTypes) when
    slurm.conf is written elsewhere.
    """

    slurmd: Json
    gres: str
    node: str
    gres_conf: str | None = None
    types: str | None = None


def finding(of: GpuSpec, before: Iterable[Condition]) -> Finding | None:
    """Return the condition of a NodeSet with GPUs; None for one that never had any.

    It does not affect Ready: slurmctld itself rejects or drains such nodes. `before` are the
    NodeSet's conditions.
    """
    found = differences(of)
    if found:
        return Finding(True, SlurmNodeReason.GRES_DIFFERS, "; ".join(found), type=MISMATCH)
    if devices(of.slurmd) or gres(of) or find(before, MISMATCH) is not None:
        return Finding(True, SlurmNodeReason.GRES_AGREES, type=MISMATCH, inverted=True)
    return None


def differences(of: GpuSpec) -> list[str]:
    """Return the differences as messages. A value that is declared nowhere differs from none."""
    given, asked = devices(of.slurmd), gres(of)
    files = listed(of.gres_conf, of.node) if of.gres_conf is not None else None
    found: list[str] = []
    if given and not asked:
        found.append(
            f"a worker is given {_pod(given)} and spec.extraConf has no Gres=gpu:"
            f"{sum(given.values())}: no job can ask for them"
        )
    elif given and sum(given.values()) != asked:
        found.append(f"a worker is given {_pod(given)}, and Gres in spec.extraConf has {asked}")
    if asked and files is not None and files != asked:
        less = ": slurmctld drains a node with fewer" if files < asked else ""
        found.append(f"gres.conf has {files} for {of.node}, and Gres has {asked}{less}")
    if asked and of.types is not None and GPU not in of.types.lower().split(","):
        found.append("GresTypes in the Controller's extraConf lacks gpu: slurmctld rejects Gres")
    return found


def devices(slurmd: Json) -> dict[str, int]:
    """The GPUs that a container is given, by the name of the resource."""
    resources = cast("Json", slurmd.get("resources") or {})
    found: dict[str, int] = {}
    for kind in ("requests", "limits"):
        for name, count in cast("Json", resources.get(kind) or {}).items():
            if _DEVICE.fullmatch(name) and _COUNT.fullmatch(str(count)) and int(count):
                found[name] = int(count)
    return found


def gres(of: GpuSpec) -> int:
    """How many GPUs of all types jobs may ask a node for."""
    every = counts(of.gres)
    return sum(count for name, count in every.items() if name.split(":")[0].lower() == GPU)


def listed(gres_conf: str, node: str) -> int | None:
    """How many GPUs gres.conf has for a node; None when slurmd finds them, or it has no line."""
    found: int | None = None
    if len(gres_conf) > LONGEST_CONF:
        return None
    for line in Document.parse(gres_conf).lines:
        keys = {one.key.lower(): one.value for one in line.settings}
        if not keys:
            continue
        try:
            mine = hostlist.contains(keys.get("nodename", node), node)
            files = hostlist.count(keys["file"]) if "file" in keys else 0
        except hostlist.HostListError:
            return None
        if mine and keys.get("autodetect", "off").lower() != "off":
            return None
        if mine and keys.get("name", "").lower() == GPU:
            # MultipleFiles of a line are one device.
            count = keys.get("count", "1")
            if not files and not _COUNT.fullmatch(count):
                return None
            found = (found or 0) + (files or int(count))
    return found


def _pod(given: Mapping[str, int]) -> str:
    return ", ".join(f"{given[name]} {name}" for name in sorted(given))
