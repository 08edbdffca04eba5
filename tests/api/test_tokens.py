"""Tokens before a real API server, under the operator's own rights: D11, D12, F13."""

from __future__ import annotations

import base64

import pytest

from penstock.api.kubernetes.kinds import SECRETS
from penstock.api.kubernetes.meta import Json
from penstock.slurm.auth import jwt
from support.operator_kit import Lab, Node, lab

pytestmark = pytest.mark.api

NAME = "ann-jwt-ann"
REF: Json = {"username": "ann", "jwtKeyRef": {"name": "keys", "key": "jwt.key"}}


def token(**spec: object) -> Json:
    meta = {"name": "ann", "labels": {"team": "a"}}
    api = "slinky.slurm.net/v1beta1"
    return {"apiVersion": api, "kind": "Token", "metadata": meta, "spec": {**REF, **spec}}


def key(value: bytes) -> Json:
    data = {"jwt.key": base64.b64encode(value).decode()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys"}, "data": data}


def claims(lab_: Lab, signed: bytes) -> Json:
    """Of the token that is there; nothing while it is of another key."""
    found = lab_.get("Secret", NAME)
    try:
        text = base64.b64decode(found["data"]["SLURM_JWT"]).decode() if found else ""
        return jwt.signed_claims(signed, text)
    except jwt.JwtError:
        return {}


async def test_a_token_is_made_made_again_and_taken_away_with_its_name(api_node: Node) -> None:
    async with lab(api_node) as lab_, lab_.operator() as running:
        await lab_.apply(key(b"one"), token(lifetime="1h"))
        await lab_.until(lambda: lab_.ready("Token", "ann"))
        first = claims(lab_, b"one")
        assert first["exp"] - first["iat"] == 3600
        secret, obj = lab_.get("Secret", NAME), lab_.get("Token", "ann")
        assert secret is not None
        assert obj is not None
        assert secret["metadata"]["ownerReferences"][0]["uid"] == obj["metadata"]["uid"]
        assert secret["metadata"]["labels"] == {"team": "a"}
        await lab_.calm()
        before = list(running.writes)
        await lab_.apply(token(lifetime="1h"))
        await lab_.calm()
        assert running.writes == before, "a settled Token is silent"
        await lab_.apply(key(b"two"))
        await lab_.until(lambda: bool(claims(lab_, b"two")))
        await lab_.user.delete(SECRETS, lab_.namespace, NAME)
        await lab_.until(lambda: bool(claims(lab_, b"two")))
        await lab_.apply(token(secretRef={"name": "mine", "key": "token"}))
        await lab_.until(lambda: lab_.names("Secret") == ["keys", "mine"])


async def test_one_that_is_not_refreshed_cannot_be_changed_until_it_is_to_be(
    api_node: Node,
) -> None:
    async with lab(api_node) as lab_, lab_.operator():
        await lab_.apply(key(b"one"), token(refresh=False))
        await lab_.until(lambda: lab_.ready("Token", "ann"))
        made = lab_.get("Secret", NAME)
        assert made is not None
        assert made["immutable"] is True
        await lab_.apply(key(b"two"))
        await lab_.until(lambda: lab_.has_reason("Token", "ann", "KeyChanged"))
        assert claims(lab_, b"one")
        await lab_.apply(token(refresh=True))
        await lab_.until(lambda: bool(claims(lab_, b"two")))
        await lab_.until(lambda: lab_.ready("Token", "ann"))
        assert not (lab_.get("Secret", NAME) or {}).get("immutable")
