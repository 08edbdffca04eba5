"""What the pod of a check reports about the Slurm jobs that it submitted.

The original's image writes annotations of the Kubernetes Job itself. Penstock's program writes the
same as lines `key=value` of the container's termination message, which needs no right and outlives
the operator: the operator copies them to the annotations.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate

from penstock.api.kubernetes.kinds import Pod
from penstock.base.compressed import MARK, plain
from penstock.catalog.marks import nebius

JOB_IDS = nebius.SLURM_JOB_IDS.key
"""Annotation, and line, where the ids may have ranges, as 5,7-9, or be compressed."""
UNHANDLED_IDS = nebius.UNHANDLED_JOB_IDS.key
SKIPPED = nebius.SKIPPED_REASON.key
"""Annotation and line."""
FINAL_TIME = nebius.FINAL_STATE_TIME.key
_KEYS = frozenset({JOB_IDS, SKIPPED})
_MOST = 10_000
_LAST = 0xFFFFFFFD
"""The highest id: in a federation it begins with the number of the cluster."""
_ID = re.compile(r"[0-9]{1,10}")
_MOST_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Submission:
    """What a Kubernetes Job submitted. `is_known` is False before its pod has reported."""

    ids: tuple[int, ...] = ()
    skipped: str = ""

    @property
    def is_known(self) -> bool:
        """Whether there is a job or a reason for none."""
        return bool(self.ids or self.skipped)


def submission(given: Mapping[str, str]) -> Submission:
    """What the annotations of a Kubernetes Job report."""
    return Submission(ids_in(given.get(JOB_IDS, "")), given.get(SKIPPED, ""))


def reported(pods: Iterable[Pod], container: str) -> Submission:
    """What the ended container of that name reports."""
    for pod in pods:
        for one in pod.status.container_statuses or ():
            ended = one.state.terminated
            if one.name == container and ended is not None:
                found = dict(_lines(ended.message or ""))
                return Submission(ids_in(found.get(JOB_IDS, "")), found.get(SKIPPED, ""))
    return Submission()


def submission_annotations(found: Submission) -> dict[str, str]:
    """The annotations that a submission gives its Kubernetes Job."""
    if not found.ids:
        return {SKIPPED: found.skipped} if found.skipped else {}
    text = ",".join(map(str, found.ids))
    return {JOB_IDS: text, UNHANDLED_IDS: text}


def ids_in(text: str) -> tuple[int, ...]:
    """The ids in a list with ranges, each once; what is no id is left out."""
    if text.startswith(MARK):
        return _compressed_ids(text)
    found: dict[int, None] = {}
    for item in text.split(","):
        first, dash, last = item.strip().partition("-")
        if not _ID.fullmatch(first) or (dash and not _ID.fullmatch(last)):
            continue
        low, high = int(first), int(last or first)
        if 0 < low <= high <= _LAST and high - low < _MOST:
            found.update(dict.fromkeys(range(low, high + 1)))
    return tuple(found)[:_MOST]


def _compressed_ids(text: str) -> tuple[int, ...]:
    """Ids as `images/entrypoints/jail_check.py` compresses them: steps from one to the next."""
    try:
        steps = plain(text, _MOST_BYTES).split(",")
    except ValueError:
        return ()
    if not all(map(_ID.fullmatch, steps)):
        return ()
    found = dict.fromkeys(one for one in accumulate(map(int, steps)) if 0 < one <= _LAST)
    return tuple(found)[:_MOST]


def _lines(text: str) -> Iterable[tuple[str, str]]:
    for line in text.splitlines():
        key, _, value = line.partition("=")
        if key in _KEYS:
            yield key, value.strip()
