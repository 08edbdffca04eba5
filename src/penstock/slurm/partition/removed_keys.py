"""Keys that a PartitionName line had and has no more, as when a text is replaced as a whole.

Source: slurm.conf(5), PARTITION CONFIGURATION.
"""

from __future__ import annotations

from penstock.slurm.conf.document import Document
from penstock.slurm.partition.declaration import DEFAULT, PARTITION, RemovedKey, partition_lines
from penstock.slurm.partition.keys import BY_KEY, resolved


def removed_keys(old_text: str, new_text: str) -> dict[str, tuple[RemovedKey, ...]]:
    """By partition what two texts of slurm.conf make of it; only those that both have.

    What a DEFAULT line has no more is no key of one partition.
    """
    before, after = _own(old_text), _own(new_text)
    found = {
        name: _of(name, before[name], after[name], new_text)
        for name in before
        if name in after and name.upper() != DEFAULT
    }
    return {name: many for name, many in found.items() if many}


def _of(
    name: str, before: dict[str, str], after: dict[str, str], text: str
) -> tuple[RemovedKey, ...]:
    left = [key for key in before if key not in after]
    inherited = resolved(dict(partition_lines(text)[name].keys)) if left else {}
    found: list[RemovedKey] = []
    for key in left:
        row = BY_KEY.get(key)
        now = inherited.get(key, row.absent if row is not None else "")
        found.append(
            RemovedKey(row.key if row is not None else key, before[key], now, key in inherited)
        )
    return tuple(found)


def _own(text: str) -> dict[str, dict[str, str]]:
    """Each line's own keys, by the name of its partition."""
    return {
        record.name: resolved({one.key.lower(): one.value for one in record.settings})
        for record in Document.parse(text).records(PARTITION)
    }
