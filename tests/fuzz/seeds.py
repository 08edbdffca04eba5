"""Inputs to begin with: what users and daemons really write."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from penstock.api.registry import registry

EXAMPLES = Path(__file__).parents[2] / "examples"
_CONF = """\
ClusterName=a
SlurmctldHost=a(a.slurm)
include b.conf
# words
TaskPlugin=task/affinity,task/cgroup \\
  # more
NodeSet=n Feature=n
PartitionName=DEFAULT State=UP
PartitionName=all Nodes=ALL Default=YES MaxTime=UNLIMITED TRESBillingWeights="CPU=1.0,Mem=0.25G"
"""
_LOG = """\
penstock: slurm 26.05.5
penstock: effective 0123456789abcdef
penstock: tried 0123456789abcdef ok
penstock: tried 0123456789abcdef refused: error: Parsing error / fatal: Unable to process
penstock: pending 0123456789abcdef
"""
_NODES = {
    "nodes": [
        {
            "name": "a-0",
            "state": ["IDLE", "DRAIN"],
            "reason": "penstock: words",
            "gres": "gpu:a100:8(S:0-1)",
            "weight": 1,
            "slurmd_start_time": {"set": True, "infinite": False, "number": 7},
        }
    ],
    "last_update": {"set": True, "infinite": False, "number": 7},
    "errors": [],
}
_JOBS = {
    "jobs": [{"job_id": 7, "job_state": ["RUNNING"], "nodes": "a-[0-1]", "name": "x"}],
    "last_update": {"set": True, "infinite": False, "number": 7},
    "errors": [],
}
_TOPOLOGY = """\
- topology: a
  cluster_default: true
  tree:
    switches:
      - {switch: s, children: "l[0-1]"}
      - {switch: l0, nodes: "a-[0-1]"}
"""
TEXTS: dict[str, tuple[str, ...]] = {
    "slurm-conf": (_CONF, f"{_CONF}\0{_CONF}MessageTimeout=20\n"),
    "includes": ("include a\nA=1\n\0include b\nB=1\n\0C=1\\\n",),
    "partitions": (f"{_CONF}\0{_CONF}PartitionName=b Nodes=n AllowGroups=x\n",),
    "host-lists": ("a-[0-3,7],b[001-010]c,d", "n[1-2]m[3-4]"),
    "node-words": ("Feature=a,b Weight=7 Gres=gpu:a100:8(S:0-1),shard:16",),
    "topology": (_TOPOLOGY,),
    "replies": (json.dumps(_NODES), json.dumps(_JOBS)),
    "logs": (_LOG,),
    "quantities": ("1.5Gi\0001610612736", "1h30m", "2026-11-27T10:00:00Z", "*/5 1-3 * * mon"),
    "jailed-config": ("/etc/slurm/a.conf\0# manifest\n0123  a.conf\n",),
    "check-results": ('[[7,"FAILED","a-[0-1]","words","check",1,2]]',),
    "tokens": ('eyJhbGciOiJIUzI1NiJ9.eyJzdW4iOiJhIn0.AAAA\0{"phase":"settled"}',),
    "nested-json": ('{"name":"a","annotations":{"a":"b"},"ownerReferences":[{"uid":"x"}]}',),
}


def seeds(target: str) -> list[bytes]:
    """The inputs of a target."""
    if target == "admission":
        return [json.dumps(_review(one)).encode() for one in _examples()]
    if target == "objects":
        return list(_objects())
    return [one.encode() for one in TEXTS[target]]


@cache
def _examples() -> tuple[Any, ...]:
    """Objects of our kinds, each kind and shape once or more."""
    kinds = {(one.resource.api_version, one.resource.kind) for one in registry().kinds}
    found = [
        one
        for file in sorted(EXAMPLES.glob("*.yaml"))
        for one in yaml.safe_load_all(file.read_text())
        if one and (one.get("apiVersion"), one.get("kind")) in kinds
    ]
    return tuple(found)


def _review(obj: Any) -> Any:
    group, _, version = obj["apiVersion"].partition("/")
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "a",
            "operation": "CREATE",
            "kind": {"group": group, "version": version, "kind": obj["kind"]},
            "name": obj["metadata"]["name"],
            "namespace": "slurm",
            "object": obj,
            "oldObject": None,
        },
    }


def _objects() -> Iterator[bytes]:
    kinds = [(one.resource.api_version, one.resource.kind) for one in registry().kinds]
    for one in _examples():
        number = kinds.index((one["apiVersion"], one["kind"]))
        yield bytes([number]) + b"\0" + json.dumps(one).encode()
