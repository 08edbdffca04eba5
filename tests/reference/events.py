"""Reasons of events."""

from __future__ import annotations

from penstock.catalog.event import Event
from penstock.catalog.reasons.token import TokenReason
from reference.page import Page, code, table

_OF_TOKENS = tuple(one for one in TokenReason if one.needs_person)


def page() -> Page:
    """One table, and the reasons that events share with conditions."""
    body = "\n".join(
        [
            "For everyone who reads `kubectl events`. A condition `Stalled` that becomes `True`, "
            "or `Served` that becomes `False`, emits an event of type Warning with the "
            "[condition's reason](conditions.md) and its message.\n",
            table(
                ("Reason", "Type", "Meaning"),
                (
                    *((code(one), one.type_, one.meaning) for one in Event),
                    *(
                        (code(one), "Normal", f"A Token gets a new token. {one.meaning}")
                        for one in _OF_TOKENS
                        if one not in tuple(Event)
                    ),
                ),
            ),
        ]
    )
    return Page("events", "Events", "reasons of events", body)
