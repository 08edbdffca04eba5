"""Token: known to the API, not served yet, and saying so."""

from __future__ import annotations

from penstock.api.conditions import Check
from penstock.api.slinky.served import not_served
from penstock.api.slinky.token import TOKENS, Token
from penstock.controllers.loop import Loop, Tools
from penstock.controllers.report import Events


class TokenLoop(Loop[Token]):
    """Says that nothing is done for a Token."""

    def __init__(self, tools: Tools, events: Events) -> None:
        super().__init__(tools, TOKENS, tools.world.tokens, events)

    async def bring(self, obj: Token) -> list[Check]:
        """Make nothing."""
        return [Check(False, "NotServed", "; ".join(not_served(obj)))]
