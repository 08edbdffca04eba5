from __future__ import annotations

import pytest

from penstock.slurm.auth import jwt

KEY = bytes(range(32))
NOW = 1_700_000_000


def test_a_token_carries_what_slurm_reads():
    token = jwt.mint(KEY, "alice", 900, NOW)
    claims = jwt.verify(KEY, token, NOW)
    assert claims["sun"] == "alice"
    assert claims["iat"] == claims["nbf"] == NOW
    assert claims["exp"] == NOW + 900
    assert claims["iss"] == "penstock"
    assert claims["jti"] != jwt.verify(KEY, jwt.mint(KEY, "alice", 900, NOW), NOW)["jti"]


def test_further_fields_of_a_token_win():
    token = jwt.mint(KEY, "alice", 900, NOW, {"iss": "slurm-operator", "x": 1})
    claims = jwt.verify(KEY, token, NOW)
    assert claims["iss"] == "slurm-operator"
    assert claims["x"] == 1


def test_a_token_of_another_maker_verifies():
    # HS256 of the fixed text below with KEY, computed by another implementation (openssl dgst).
    token = (
        "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9"
        ".eyJleHAiOjE3MDAwMDA5MDAsImlhdCI6MTcwMDAwMDAwMCwic3VuIjoic2x1cm0ifQ"
        ".un0W68HTdiAw0AJhY6h4d6Ba1neIOhnx3Nk-NhSBiWA"
    )
    assert jwt.verify(KEY, token, NOW)["sun"] == "slurm"


def test_a_key_in_pem_form_signs_as_any_other():
    """Slurm's manual had people make jwt_hs256.key with `openssl genrsa`."""
    begin, end = (f"-----{one} RSA PRIVATE KEY-----" for one in ("BEGIN", "END"))
    key = f"{begin}\nMIIEowIBAAKCAQEA\n{end}\n".encode()
    assert jwt.verify(key, jwt.mint(key, "alice", 900, NOW), NOW)["sun"] == "alice"


@pytest.mark.parametrize(
    ("token", "now", "why"),
    [
        (jwt.mint(KEY, "a", 900, NOW), NOW + 900, "expired"),
        (jwt.mint(KEY, "a", 900, NOW), NOW - 1, "not valid yet"),
        (jwt.mint(b"other", "a", 900, NOW), NOW, "signature"),
        ("abc", NOW, "three parts"),
        ("a.b.c.d", NOW, "three parts"),
        ("!!.b.c", NOW, "base64url"),
        ("YQ.YQ.YQ", NOW, "not a JSON object"),
        ("W10.W10.W10", NOW, "not a JSON object"),
        ("e30.e30.e30", NOW, "expected HS256"),
    ],
)
def test_a_token_that_is_no_good_gives_the_reason(token: str, now: int, why: str):
    with pytest.raises(jwt.JwtError, match=why):
        jwt.verify(KEY, token, now)
