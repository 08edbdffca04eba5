"""Faults of a Partition, beyond what its schema can express."""

from __future__ import annotations

import re
from collections.abc import Iterator

from penstock.api.admission import Problem
from penstock.api.cluster.cluster_ref import controller_ref_problems
from penstock.api.penstock.partition import (
    ENTRY_PATTERN,
    NAME_PATTERN,
    TAKEN,
    VALUE_PATTERN,
    Partition,
)

_ENTRY = re.compile(ENTRY_PATTERN)
_NAME = re.compile(NAME_PATTERN)
_VALUE = re.compile(VALUE_PATTERN)
_KEY = re.compile("[A-Za-z][A-Za-z0-9]*")
_RANGE = re.compile(r"\[([^]]*)\]")
_SPAN = re.compile(r"([0-9]{1,18})(?:-([0-9]{1,18}))?")
_WORD = re.compile(r"(?:[^\[\],]++|\[[^]]*+\])++")
MOST_NODES = 65_536
"""Names that all entries of one Partition stand for together, as in one host list of Slurm."""
LONGEST_ENTRY = 4096


def problems(obj: Partition) -> Iterator[Problem]:
    """Faults of a Partition."""
    for found in controller_ref_problems(obj.spec.controller_ref, obj.metadata.namespace):
        yield Problem(*found)
    for found in partition_problems(obj):
        yield Problem(*found)


def partition_problems(obj: Partition) -> Iterator[tuple[str, str]]:
    """Each path with what to write there, but for the reference to the cluster."""
    spec = obj.spec
    if not _NAME.match(obj.slurm_name) or obj.slurm_name.upper() == "DEFAULT":
        yield "spec.name", f"{obj.slurm_name!r} is no name of a partition: choose another one"
    total = 0
    for index, entry in enumerate(spec.nodes):
        if len(entry) > LONGEST_ENTRY:
            yield f"spec.nodes[{index}]", f"longer than {LONGEST_ENTRY} characters: write several"
            continue
        if not _ENTRY.match(entry):
            yield (
                f"spec.nodes[{index}]",
                f"{entry!r} is no host expression: write one like compute-[0-3], a NodeSet's name "
                "or ALL, with + or - before it",
            )
            continue
        size, wrong = _ranges(entry)
        if wrong:
            yield f"spec.nodes[{index}]", f"{entry!r}: {wrong}"
            continue
        total += size
        if total > MOST_NODES:
            yield (
                "spec.nodes",
                f"all entries together stand for more than {MOST_NODES} names: use a selector, or "
                "the name of a NodeSet",
            )
            break
    for key, value in spec.extra.items():
        if key.lower() in TAKEN:
            yield f"spec.extra.{key}", "there is a field for it: use the field"
        elif not _KEY.fullmatch(key) or not _VALUE.match(value):
            yield f"spec.extra.{key}", "write a key of slurm.conf and its value on one line"


def _ranges(entry: str) -> tuple[int, str]:
    """How many names an entry may stand for, and what is wrong with it; empty when nothing is."""
    total = 0
    for word in _WORD.findall(entry):
        count = 1
        for inner in _RANGE.findall(word):
            size = 0
            for part in inner.split(","):
                found = _SPAN.fullmatch(part)
                if found is None:
                    return 0, f"{part[:40]!r} is not a number or a range such as 1-4"
                low, high = int(found[1]), int(found[2] or found[1])
                if low > high:
                    return 0, f"range {part!r} runs backwards"
                size += high - low + 1
            count *= size
            if count > MOST_NODES:
                break
        total += count
        if total > MOST_NODES:
            return 0, f"stands for more than {MOST_NODES} names"
    return total, ""
