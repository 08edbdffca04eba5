"""Reasons about the JWT that a Token keeps in a Secret."""

from __future__ import annotations

from typing import Final

from penstock.catalog.condition_reason import NOTHING, PERSON, WAIT, ConditionReason

_DELETE: Final = "With spec.refresh: false, delete the Secret to have a new token issued."


class TokenReason(ConditionReason):
    """Reasons about a token; most of them are also reasons of the event about a new one."""

    VALID = "TokenValid", "The Secret has a token as declared.", NOTHING
    MISSING = "TokenMissing", "The Secret has no token; it gets one now.", WAIT
    RENEWED = "TokenRenewed", "Four fifths of the token's life have passed.", NOTHING
    TAKING_OVER = "TakingOver", "The Secret of another operator becomes this Token's.", WAIT
    KEY_CHANGED = (
        "KeyChanged",
        "The token is signed with another JWT key than the present one.",
        _DELETE,
        PERSON,
    )
    USER_CHANGED = "UserChanged", "The token is for another user.", _DELETE, PERSON
    IDENTITY_CHANGED = (
        "IdentityChanged",
        "The token has another identity than spec.identity.",
        _DELETE,
        PERSON,
    )
    LIFETIME_CHANGED = (
        "LifetimeChanged",
        "The token has another lifetime than spec.lifetime.",
        _DELETE,
        PERSON,
    )
    EXPIRED = "TokenExpired", "The token has expired.", _DELETE, PERSON
    NOT_VALID_YET = (
        "TokenNotValidYet",
        "The token becomes valid later: the clock was ahead when it was issued.",
        _DELETE,
        PERSON,
    )
    UNREADABLE = (
        "TokenUnreadable",
        "The token in the Secret has no issue or expiry time.",
        _DELETE,
        PERSON,
    )
