"""From the spec of a Token to the token that it requests."""

from __future__ import annotations

from penstock.api.slinky.token import TokenIdentity, TokenSpec
from penstock.model.token_request import TokenRequest, UserIdentity


def token_request(spec: TokenSpec) -> TokenRequest:
    """The token that a Token requests."""
    return TokenRequest(spec.username, spec.lifetime, _identity(spec.identity))


def _identity(found: TokenIdentity | None) -> UserIdentity | None:
    if found is None:
        return None
    return UserIdentity(
        uid=found.uid,
        gid=found.gid,
        groups=found.groups,
        home=found.home,
        shell=found.shell,
        gecos=found.gecos,
    )
