"""What slurmctld does to its partition records when slurmrestd is asked to.

Defaults, effects and errors are those that Slurm 26.05 showed; what it shows of a value that was
set is what was set, which is so for every key that `slurm.partition.keys` knows.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

from penstock.slurm import hostlist

Record = dict[str, Any]
UNSET = {"set": False, "infinite": False, "number": 0}
INFINITE = {"set": False, "infinite": True, "number": 0}
_NO_MEMORY = {"set": True, "infinite": False, "number": 0}
_MEMORY = ("partition_memory_per_cpu", "partition_memory_per_node")


def new(name: str) -> Record:
    """A partition that was created with nothing but its name."""
    memory = {"partition_memory_per_cpu": UNSET, "partition_memory_per_node": _NO_MEMORY}
    return {
        "name": name,
        "node_sets": "",
        "nodes": {"allowed_allocation": "", "configured": "", "total": 0},
        "accounts": {"allowed": "", "deny": ""},
        "groups": {"allowed": ""},
        "qos": {"allowed": "", "deny": "", "assigned": ""},
        "alternate": "",
        "tres": {"billing_weights": "", "configured": ""},
        "cpus": {"task_binding": [], "total": 0},
        "defaults": {**memory, "time": UNSET, "job": ""},
        "flags": [],
        "partition": {"exclusive": "NO", "oversubscribe": "NO", "state": ["UP"]},
        "grace_time": 0,
        "maximums": {
            **memory,
            "cpus_per_node": INFINITE,
            "cpus_per_socket": INFINITE,
            "nodes": INFINITE,
            "time": INFINITE,
            "over_time_limit": UNSET,
        },
        "minimums": {"nodes": 1},
        "preempt_mode": ["CLUSTER_GLOBAL"],
        "priority": {"job_factor": 1, "tier": 1},
        "topology": "",
    }


def changed(record: Record, body: Record) -> Record:
    """The record after an update; its nodes are left to the caller."""
    found = copy.deepcopy(record)
    for key, value in body.items():
        if key == "flags":
            found["flags"] = _flags(found["flags"], value)
        elif key in ("defaults", "maximums"):
            found[key] = _limits(found[key], value)
        elif key == "nodes":
            hosts = value.get("allowed_allocation", found[key]["allowed_allocation"])
            found[key]["allowed_allocation"] = "" if hosts == "ALL" else hosts
        elif isinstance(value, dict):
            found[key] |= value
        else:
            found[key] = value
    found["defaults"]["job"] = ""
    for place, word in (("accounts", "allowed"), ("groups", "allowed"), ("qos", "allowed")):
        if found[place][word] == "ALL":
            found[place][word] = ""
    if found["cpus"]["task_binding"] == ["CPU_BIND_OFF"]:
        found["cpus"]["task_binding"] = []
    if found["alternate"] == "NONE":
        found["alternate"] = ""
    return found


def placed(record: Record, configured: str, nodes: Iterable[str], sets: Iterable[str]) -> Record:
    """The record with the nodes that `configured` stands for; `sets` are the node sets in it."""
    names = sorted(set(nodes))
    shown = {"configured": hostlist.compress(names), "total": len(names)}
    return {**record, "nodes": {**record["nodes"], **shown}, "node_sets": ",".join(sets)}


def _flags(old: list[str], given: list[str]) -> list[str]:
    cleared = {one.removesuffix("_CLEAR") for one in given if one.endswith("_CLEAR")}
    added = [one for one in given if not one.endswith("_CLEAR")]
    return [one for one in dict.fromkeys([*old, *added]) if one not in cleared]


def _limits(old: Record, given: Record) -> Record:
    """What is neither set nor infinite changes nothing; of the memory limits one is set."""
    message = {key: value for key, value in given.items() if value != UNSET}
    found = {**old, **message}
    for one, other in (_MEMORY, _MEMORY[::-1]):
        if one in message:
            found[other] = UNSET
    return found
