"""Runbooks: the page for each reason that needs a person, and its short address.

The pages are docs/runbooks, packaged as penstock/runbooks, which is a link in a checkout.
"""

from __future__ import annotations

import difflib
import re
from importlib import resources
from typing import Final

from penstock.catalog.condition_reason import ConditionReason

BASE: Final = "https://penstock.dev/r/"
"""Address before the name of a reason. It leads to the page of the version that is documented."""
_FOLDER: Final = "runbooks"
_SEE: Final = ". See "
_END: Final = re.compile(rf"{re.escape(_SEE)}{re.escape(BASE)}\w+$")
_SIMILAR: Final = 0.5
_MOST: Final = 5


def address(reason: ConditionReason) -> str:
    """The short address of a reason's runbook; empty for a reason without one."""
    return f"{BASE}{reason.value}" if reason.needs_person else ""


def with_address(message: str, reason: ConditionReason, limit: int) -> str:
    """The message of a condition with the address at its end, in at most `limit` characters.

    A message that has an address already, as it quotes another condition, gets this one in place.
    """
    words = without_address(message)
    found = address(reason)
    if not found:
        return words[:limit]
    end = f"{_SEE}{found}" if words else f"See {found}"
    return f"{words[: limit - len(end)].rstrip('. ')}{end}"


def without_address(message: str) -> str:
    """The message of a condition without the address at its end, for events and quotations."""
    return _END.sub("", message) if BASE in message else message


def text(name: str) -> str | None:
    """The page for a reason of that name; None without one."""
    page = resources.files("penstock").joinpath(_FOLDER, f"{name}.md")
    return page.read_text(encoding="utf-8") if name.isalnum() and page.is_file() else None


def similar(name: str, known: list[str]) -> list[str]:
    """The known names that are most like one; the letters' case does not matter."""
    by_lower = {one.lower(): one for one in known}
    found = difflib.get_close_matches(name.lower(), by_lower, _MOST, _SIMILAR)
    return [by_lower[one] for one in found]
