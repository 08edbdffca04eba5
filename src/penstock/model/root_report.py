"""What is in the root of one worker, as its sidecar reports it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

CONTAINER: Final = "jail-root"
"""The container of a worker that reports its root."""


@dataclass(frozen=True, slots=True)
class RootReport:
    """Digests by subject, and changes since the root was filled: `+entry` and `-entry`.

    `*` among the changes of a subject means that there are more.
    """

    digests: Mapping[str, str]
    changes: Mapping[str, Sequence[str]]
