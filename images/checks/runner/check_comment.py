"""The part of a Slurm node's comment that is of checks.

The comment of a worker is a JSON object of the operator's, in which checks have one key. Any other
comment is somebody's words, or those of a check. Both the operator and the quick checks in a worker
read it, so this module needs nothing beside the standard library.
"""

from __future__ import annotations

import json
from typing import Any, cast

CHECK = "check"
"""The key of checks. Its value outlives pods."""


def values(comment: str) -> dict[str, Any] | None:
    """The JSON object that a comment is; None for any other comment."""
    if not comment.startswith("{"):
        return None
    try:
        found = json.loads(comment)
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", found) if isinstance(found, dict) else None


def check_comment(comment: str) -> str:
    """The comment of a check, or of a user in plain words; empty without one."""
    found = values(comment)
    if found is None:
        return comment
    text = found.get(CHECK)
    return text if isinstance(text, str) else ""


def with_check_comment(comment: str, text: str) -> str:
    """A node's comment with that of a check, which an empty text removes."""
    found = values(comment) or {}
    left = {key: value for key, value in found.items() if key != CHECK}
    if text:
        left[CHECK] = text
    return json.dumps(left, separators=(",", ":"), ensure_ascii=False) if left else ""
