"""The operator and Tokens, on simulated machines and in simulated time: D11, D12, F13."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable
from typing import Any

from fault_plans.plan import Layout
from fault_plans.world import CORE, GROUP, SPACE, World
from penstock.api.kubernetes.meta import Json
from penstock.base.times import parse
from penstock.simulation.event_loop import simulate
from penstock.slurm.auth import jwt

KEY = b"k" * 64
NAME = "ann-jwt-ann"
REF: Json = {"name": "keys", "key": "jwt.key"}


class Lab:
    """A cluster with an operator, and a Token `ann`."""

    def __init__(self) -> None:
        self.world = World(1, Layout())

    def secret(self, name: str, data: dict[str, bytes], owner: Json | None = None) -> None:
        meta: Json = {"name": name, "namespace": SPACE}
        if owner is not None:
            meta["ownerReferences"] = [owner]
        body = {"kind": "Secret", "metadata": meta, "data": encoded(data)}
        self.world.ask("POST", f"{CORE}/secrets", body)

    def rotate(self, key: bytes) -> None:
        self.world.ask("PATCH", f"{CORE}/secrets/keys", {"data": encoded({"jwt.key": key})})

    def token(self, meta: Json | None = None, **spec: Any) -> None:
        whole = {"username": "ann", "jwtKeyRef": REF, **spec}
        about = {"name": "ann", "namespace": SPACE, **(meta or {})}
        body = {"kind": "Token", "metadata": about, "spec": whole}
        self.world.ask("POST", f"{GROUP}/tokens", body)

    def change(self, **spec: Any) -> None:
        self.world.ask("PATCH", f"{GROUP}/tokens/ann", {"spec": spec})

    def made(self, name: str = NAME) -> Json | None:
        return self.world.find("/secrets", name)

    def claims(self, key: bytes = KEY, name: str = NAME) -> Json:
        """Of the token that is there, signed with the key."""
        found = self.made(name)
        assert found is not None
        text = base64.b64decode(found["data"]["SLURM_JWT"]).decode()
        return jwt.signed_claims(key, text)

    def ready(self) -> tuple[str, str]:
        """Status and reason of Ready, once it is about the Token as it is declared."""
        found = self.world.find("slinky.slurm.net/tokens", "ann") or {}
        status: Json = found.get("status") or {}
        if status.get("observedGeneration") != found.get("metadata", {}).get("generation"):
            return "", ""
        every = {one["type"]: one for one in status.get("conditions", ())}
        return (
            (every["Ready"]["status"], every["Ready"]["reason"]) if "Ready" in every else ("", "")
        )

    async def until(self, holds: Callable[[], object], seconds: float = 30) -> None:
        for _ in range(int(seconds * 10)):
            if holds():
                return
            await asyncio.sleep(0.1)
        raise AssertionError((self.ready(), self.made()))

    async def valid(self) -> None:
        await self.until(lambda: self.ready() == ("True", "TokenValid"))


def encoded(data: dict[str, bytes]) -> dict[str, str]:
    return {name: base64.b64encode(value).decode() for name, value in data.items()}


def played(play: Callable[[Lab], Awaitable[None]], key: bytes | None = KEY) -> None:
    """Play with an operator that runs, and the Secret of the key if there is to be one."""

    async def run() -> None:
        lab = Lab()
        if key is not None:
            lab.secret("keys", {"jwt.key": key})
        process = lab.world.operator()
        await play(lab)
        await lab.world.crash(process)

    simulate(run())


def test_a_token_is_the_tokens_own_and_says_how_long_it_lives() -> None:
    """D11: upstream's Secret belongs to the key, outlives the Token and dies with the key."""

    async def play(lab: Lab) -> None:
        applied = "kubectl.kubernetes.io/last-applied-configuration"
        meta = {"labels": {"team": "a"}, "annotations": {"reflect": "yes", applied: "{}"}}
        lab.token(meta, lifetime="1h")
        await lab.valid()
        claims, token = lab.claims(), lab.world.find("slinky.slurm.net/tokens", "ann")
        made = lab.made()
        assert token is not None
        assert made is not None
        assert claims["sun"] == "ann"
        assert claims["exp"] - claims["iat"] == 3600
        owner = made["metadata"]["ownerReferences"][0]
        assert (owner["kind"], owner["uid"]) == ("Token", token["metadata"]["uid"])
        assert made["metadata"]["labels"] == {"team": "a"}
        assert made["metadata"]["annotations"] == {"reflect": "yes"}
        assert not made.get("immutable")
        assert parse(token["status"]["issuedAt"]) == claims["iat"]
        assert parse(token["status"]["expiresAt"]) == claims["exp"]

    played(play)


def test_a_token_is_renewed_before_it_ends_and_written_no_more_often() -> None:
    """Feature row 21."""

    async def play(lab: Lab) -> None:
        lab.token(lifetime="10m")
        await lab.valid()
        seen = {lab.claims()["iat"]}
        for _ in range(60 * 60):
            await asyncio.sleep(1)
            claims = lab.claims()
            assert claims["exp"] > lab.world.true_time() + 115
            seen.add(claims["iat"])
        assert len(seen) in (8, 9)

    played(play)


def test_a_token_that_a_late_clock_made_is_replaced_before_it_ends() -> None:
    """The clock was corrected meanwhile, and nothing else changed: fault plan 476."""

    async def play(lab: Lab) -> None:
        lab.world.clock.jump(-600)
        lab.token(lifetime="15m")
        await lab.valid()
        lab.world.clock.set_right()
        for _ in range(900):
            await asyncio.sleep(1)
            assert lab.claims()["exp"] > lab.world.true_time()

    played(play)


def test_a_rotated_key_makes_a_new_token_at_once() -> None:
    """D12: upstream fails for ever on the old token."""

    async def play(lab: Lab) -> None:
        lab.token(lifetime="24h")
        await lab.valid()
        lab.rotate(b"new")
        await asyncio.sleep(1)
        assert lab.claims(b"new")["sun"] == "ann"
        await lab.valid()

    played(play)


def test_a_token_waits_for_its_key_and_keeps_what_it_has_when_the_key_goes() -> None:
    async def play(lab: Lab) -> None:
        lab.token()
        await lab.until(lambda: lab.ready() == ("False", "SecretNotFound"))
        assert lab.made() is None
        lab.secret("keys", {"jwt.key": KEY})
        await lab.valid()
        before = lab.made()
        lab.world.ask("DELETE", f"{CORE}/secrets/keys", {})
        await lab.until(lambda: lab.ready() == ("False", "SecretNotFound"))
        await asyncio.sleep(60)
        assert lab.made() == before

    played(play, key=None)


def test_a_deleted_or_spoilt_secret_comes_again() -> None:
    async def play(lab: Lab) -> None:
        lab.token()
        await lab.valid()
        first = lab.claims()
        lab.world.ask("PATCH", f"{CORE}/secrets/{NAME}", {"data": encoded({"SLURM_JWT": b"x"})})
        await asyncio.sleep(1)
        assert lab.claims() == first
        lab.world.ask("DELETE", f"{CORE}/secrets/{NAME}", {})
        await lab.until(lambda: lab.made() is not None)
        assert lab.claims() == first

    played(play)


def test_a_token_that_is_not_refreshed_is_made_once_and_says_when_it_is_of_no_use() -> None:
    async def play(lab: Lab) -> None:
        lab.token(refresh=False)
        await lab.valid()
        made = lab.made()
        assert made is not None
        assert made["immutable"]
        await asyncio.sleep(800)
        assert lab.made() == made
        assert lab.ready() == ("True", "TokenValid")
        await asyncio.sleep(110)
        assert lab.made() == made
        assert lab.ready() == ("False", "TokenExpired")
        lab.world.ask("DELETE", f"{CORE}/secrets/{NAME}", {})
        await lab.valid()
        assert lab.claims()["exp"] > lab.world.true_time() + 800
        lab.rotate(b"new")
        await lab.until(lambda: lab.ready() == ("False", "KeyChanged"))
        lab.change(refresh=True)
        await lab.valid()
        assert lab.claims(b"new")
        assert not (lab.made() or {}).get("immutable")

    played(play)


def test_another_name_of_the_secret_takes_the_old_one_away() -> None:
    async def play(lab: Lab) -> None:
        lab.token()
        await lab.valid()
        lab.change(secretRef={"name": "mine", "key": "SLURM_JWT"})
        await lab.until(lambda: lab.made("mine") is not None and lab.made() is None)
        assert lab.claims(name="mine")["sun"] == "ann"

    played(play)


def test_somebody_elses_secret_is_left_alone() -> None:
    async def play(lab: Lab) -> None:
        lab.secret(NAME, {"SLURM_JWT": b"theirs"})
        before = lab.made()
        lab.token()
        await lab.until(lambda: lab.ready() == ("False", "Refused"))
        assert lab.made() == before

    played(play)


def test_a_secret_of_slurm_operator_is_taken_over_with_its_token() -> None:
    """D11: at a switch-over; that one belongs to the Secret of the key."""

    async def play(lab: Lab) -> None:
        key = lab.made("keys")
        assert key is not None
        now = lab.world.true_time()
        theirs = jwt.mint(KEY, "ann", 900, now, {"iss": "slurm-operator"})
        owner = {"apiVersion": "v1", "kind": "Secret", "name": "keys", "controller": True}
        owner["uid"] = key["metadata"]["uid"]
        lab.secret(NAME, {"SLURM_JWT": theirs.encode()}, owner)
        lab.token()
        await lab.valid()
        found = lab.made()
        assert found is not None
        assert [one["kind"] for one in found["metadata"]["ownerReferences"]] == ["Token"]
        assert lab.claims()["iss"] == "slurm-operator"
        await asyncio.sleep(900)
        assert lab.claims()["iss"] == "penstock"

    played(play)


def test_a_secret_of_another_key_of_that_name_is_not_taken_over() -> None:
    """Its owner is gone, so it goes as well: a name is no sign of who owns an object."""

    async def play(lab: Lab) -> None:
        theirs = jwt.mint(KEY, "ann", 900, lab.world.true_time(), {"iss": "slurm-operator"})
        owner = {"apiVersion": "v1", "kind": "Secret", "name": "keys", "controller": True}
        lab.secret(NAME, {"SLURM_JWT": theirs.encode()}, {**owner, "uid": "of-a-former-one"})
        lab.token()
        await asyncio.sleep(60)
        found = lab.made()
        kept = found is not None and lab.claims()["iss"] == "slurm-operator"
        kinds = [one["kind"] for one in found["metadata"]["ownerReferences"]] if found else []
        assert not kept or kinds == ["Secret"]

    played(play)


def test_slurm_conf_takes_identities_of_tokens_as_long_as_there_are_some() -> None:
    """D43: slurmctld knows who the user of such a token is without a look-up."""

    async def play(lab: Lab) -> None:
        world = lab.world
        world.declare(1)

        def conf() -> str:
            found = world.find("/configmaps", "slurm-config")
            return found["data"]["slurm.conf"] if found else ""

        await lab.until(lambda: "jwt_key=/etc/slurm/jwt.key\n" in conf(), 60)
        ref = {"name": "slurm-auth-jwt", "key": "jwt.key"}
        lab.token(jwtKeyRef=ref, identity={"uid": 20001, "gid": 20000})
        await lab.valid()
        await lab.until(lambda: "jwt_key=/etc/slurm/jwt.key,use_jwt_client_ids\n" in conf())
        secret = world.find("/secrets", "slurm-auth-jwt")
        assert secret is not None
        key = base64.b64decode(secret["data"]["jwt.key"])
        assert lab.claims(key)["uid"] == 20001
        world.ask("DELETE", f"{GROUP}/tokens/ann", {})
        await lab.until(lambda: "jwt_key=/etc/slurm/jwt.key\n" in conf())

    played(play, key=None)
