"""When a Token needs a new token. D12, feature row 21."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.api.slinky.token import TokenIdentity, TokenSpec
from penstock.decide.auth.token import LONGEST_S, identity_claims, judge, lifetime_s
from penstock.model.token_request import TokenRequest
from penstock.slurm.auth import jwt
from penstock.translate.slinky.token_request import token_request

KEY = b"k" * 64
NOW = 1_700_000_000.0
ALICE = TokenIdentity(uid=20001, gid=20000)


def spec(**fields: Any) -> TokenRequest:
    return token_request(TokenSpec(username=fields.pop("username", "alice"), **fields))


def made(of: TokenRequest, key: bytes = KEY, at: float = NOW) -> str:
    return jwt.mint(key, of.username, lifetime_s(of), at, identity_claims(of))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("", 900),
        ("0", 900),
        ("-1h", 900),
        ("1h30m", 5400),
        ("1.5s", 2),
        ("1ns", 1),
        ("9999999h", LONGEST_S),
    ],
)
def test_a_token_lives_as_long_as_declared_within_slurms_bounds(text: str, seconds: int) -> None:
    assert lifetime_s(spec(lifetime=text)) == seconds


@pytest.mark.parametrize(("after", "reason"), [(0, ""), (719, ""), (721, "TokenRenewed")])
def test_a_token_is_renewed_after_four_fifths_of_its_life(after: int, reason: str) -> None:
    found = judge(spec(), KEY, made(spec()), NOW + after)
    assert found.reason == reason
    assert found.token is not None
    assert (found.token.issued_at, found.token.expires_at) == (NOW, NOW + 900)


@pytest.mark.parametrize(
    ("wanted", "token", "reason"),
    [
        (spec(), None, "TokenMissing"),
        (spec(), made(spec(), key=b"old"), "KeyChanged"),
        (spec(), "garbage", "KeyChanged"),
        (spec(), made(spec(), at=NOW - 900), "TokenExpired"),
        (spec(), made(spec(), at=NOW + 61), "TokenNotValidYet"),
        (spec(), made(spec(), at=NOW + 60), ""),
        (spec(username="bob"), made(spec()), "UserChanged"),
        (spec(lifetime="1h"), made(spec()), "LifetimeChanged"),
        (spec(identity=ALICE), made(spec()), "IdentityChanged"),
        (spec(), made(spec(identity=ALICE)), "IdentityChanged"),
        (spec(), jwt.mint(KEY, "alice", 900, NOW, {"exp": "soon"}), "TokenUnreadable"),
    ],
)
def test_what_is_held_is_replaced_when_it_is_not_what_is_declared(
    wanted: TokenRequest, token: str | None, reason: str
) -> None:
    assert judge(wanted, KEY, token, NOW).reason == reason


def test_an_identity_has_everything_without_which_slurm_ignores_it() -> None:
    """What it wants: slurm.conf(5), AuthAltParameters, use_jwt_client_ids."""
    assert identity_claims(spec()) == {}
    assert identity_claims(spec(identity=ALICE)) == {
        "uid": 20001,
        "gid": 20000,
        "id": {
            "name": "alice",
            "gecos": "alice",
            "dir": "/home/alice",
            "shell": "/bin/bash",
            "gids": [20000],
        },
    }
    whole = TokenIdentity(
        uid=1, gid=2, groups={"night": 20002}, home="/h", shell="/bin/sh", gecos="Alice A"
    )
    assert identity_claims(spec(identity=whole))["id"] == {
        "name": "alice",
        "gecos": "Alice A",
        "dir": "/h",
        "shell": "/bin/sh",
        "groups": {"night": 20002},
    }


def test_a_token_with_an_identity_stays_while_the_identity_does() -> None:
    whole = spec(identity=TokenIdentity(uid=1, gid=2, groups={"a": 3, "b": 4}))
    turned = spec(identity=TokenIdentity(uid=1, gid=2, groups={"b": 4, "a": 3}))
    assert judge(turned, KEY, made(whole), NOW).reason == ""
