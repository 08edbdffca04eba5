"""The sections of a slurm.conf that the operator renders, as text.

Source: slurm.conf(5).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from penstock.slurm.conf.lines import EXTRA, title
from penstock.slurm.partition.declaration import copy_partitions

PARTITIONS: Final = "NODESET & PARTITION"
MERGED: Final = "MERGED CONFIG"
"""Options of ours that are joined to the user's."""
FEWEST_NODES: Final = 1024
"""MaxNodeCount of every cluster of slurm-operator: a cluster that fits sees no other line."""
_KEY_LINES = (
    "clustername",
    "slurmctldhost",
    "slurmctldport",
    "slurmctldaddr",
    "auth",
    "accounting",
)


def extra_conf_of(text: str) -> str:
    """The user's own lines in a slurm.conf of ours; empty when it has none."""
    return _parts(text)[1]


def with_partitions_of(old_text: str, new_text: str, names: Collection[str]) -> str:
    """`new_text` in which the partitions of these names are as `old_text` has them.

    Each stays in its part of the file: among the Controller's own lines that of a NodeSet or of a
    Partition would be taken for one of these from then on, and come after what those declare.
    """
    (old_head, old_own, _), (head, own, merged) = _parts(old_text), _parts(new_text)
    head, own = copy_partitions(old_head, head, names), copy_partitions(old_own, own, names)
    after = (EXTRA, own), (MERGED, merged)
    return head + "".join(f"{title(name)}{lines}" for name, lines in after if lines)


def _parts(text: str) -> tuple[str, str, str]:
    """What comes before the user's own lines, these, and what was joined to them."""
    head, _, after = text.partition(title(EXTRA))
    own, mark, merged = after.rpartition(title(MERGED))
    return (head, own, merged) if mark else (head, after, "")


def identity(text: str) -> str:
    """The lines of slurm.conf that identify slurmctld and the way to it.

    A client daemon that reads slurm.conf once (slurmrestd) needs a restart when these change, and
    only then. Source: slurm.conf(5), slurmrestd(8).
    """
    return "".join(
        f"{line}\n" for line in text.splitlines() if line.strip().lower().startswith(_KEY_LINES)
    )


def node_count_of(text: str) -> int:
    """The MaxNodeCount in a slurm.conf of ours; 0 when the line there is not of our making."""
    line = next((one for one in text.splitlines() if one.startswith("MaxNodeCount=")), "")
    number = line.partition("=")[2].strip()
    count = int(number) if number.isdecimal() else 0
    steps, rest = divmod(count, FEWEST_NODES)
    return count if steps and not rest and steps & (steps - 1) == 0 else 0
