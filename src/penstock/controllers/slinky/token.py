"""Token: a JWT of one Slurm user in a Secret, kept valid."""

from __future__ import annotations

import contextlib

import msgspec

from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.kinds import SECRETS, Secret
from penstock.api.kubernetes.meta import Json
from penstock.api.kubernetes.spec_parts import SecretKeySelector, Status
from penstock.api.slinky import names
from penstock.api.slinky.token import TOKENS, Token
from penstock.base import times
from penstock.controllers.runtime.reconciler import Context, Reconciler
from penstock.controllers.runtime.report import Events
from penstock.decide.auth import token as decide
from penstock.decide.auth.token import Held, Verdict
from penstock.kube import ConflictError, NotFoundError
from penstock.render.slinky import token as render
from penstock.render.slinky.inputs import owner
from penstock.slurm.auth import jwt

SOONEST_S = 1.0
LATEST_S = 3600.0
"""A machine may sleep, and its clock be set: so a token is looked at now and then in any case."""
_TOLD_BY_THE_SECRET = ("TokenMissing", decide.ROUTINE)
"""Reasons of which the event of the Secret's change says enough."""


class TokenReconciler(Reconciler[Token]):
    """Makes tokens, and makes them anew before they end or when their key changes."""

    def __init__(self, context: Context, events: Events) -> None:
        super().__init__(context, TOKENS, context.world.tokens, events)
        self._held = self.lifetimes.by_uid(dict[str, Held]())
        """By the Token's uid what its Secret holds."""
        self._made = self.lifetimes.by_uid(dict[str, str]())
        """By the Token's uid the last token that we made: the cache may not show it yet."""

    async def reconcile_object(self, obj: Token) -> list[Finding]:
        """Make the Secret, or put a new token into it."""
        space, key_ref = obj.metadata.namespace, obj.spec.effective_jwt_key_ref
        ref = names.token_secret(obj)
        self._held.pop(obj.metadata.uid, None)
        if key_ref is None:
            return []
        key = self.world.secret_value(space, key_ref)
        if not key:
            return [self._no_key(space, key_ref)]
        secret = self.world.secrets.get(f"{space}/{ref.name}")
        if secret is not None and await self._taken_over(obj, secret, key_ref.name):
            return [Finding(None, "TakingOver", f"Secret {ref.name} becomes this Token's own")]
        there = self.world.secret_value(space, ref)
        text = there.decode(errors="replace") if there is not None else None
        verdict = decide.judge(obj.spec, key, text, self.client.clock.time())
        wanted = text
        if verdict.reason and (obj.spec.refresh or text is None):
            wanted = self._new(obj, key)
        elif verdict.reason not in ("", decide.ROUTINE):
            self._hold(obj, verdict.held)
            return [_stays(verdict, ref.name)]
        if wanted is None:
            return []
        if secret is not None and secret.immutable and (obj.spec.refresh or wanted != text):
            await self.objects.remove(obj, self.events, "Secret", ref.name)
            if _ours(obj, secret):
                return [Finding(None, "TokenMissing", f"Secret {ref.name} is being made anew")]
        await self.objects.apply(obj, self.events, [render.secret(obj, wanted)])
        if wanted != text and verdict.reason not in _TOLD_BY_THE_SECRET:
            note = f"A new token of {obj.spec.username} is in Secret {ref.name}: {verdict.words}"
            self.events.normal(obj, verdict.reason, note, "Issue")
        await self._tidy(obj, ref.name)
        held = decide.judge(obj.spec, key, wanted, self.client.clock.time()).held
        self._hold(obj, held)
        until = times.write(held.expires_at) if held is not None else "an unknown time"
        return [Finding(True, "TokenValid", f"Secret {ref.name} has a token that ends at {until}")]

    def _new(self, obj: Token, key: bytes) -> str:
        """A token to put into the Secret: the one that we made last, as long as that is right."""
        now = self.client.clock.time()
        made = self._made.get(obj.metadata.uid)
        if made is None or decide.judge(obj.spec, key, made, now).reason:
            claims = decide.identity_claims(obj.spec)
            made = jwt.mint(key, obj.spec.username, decide.lifetime_s(obj.spec), now, claims)
            self._made[obj.metadata.uid] = made
        return made

    def requeue_after(self, obj: Token) -> float | None:
        """When the token is to be renewed, or has ended."""
        held = self._held.get(obj.metadata.uid)
        if held is None:
            return None
        when = held.renew_at if obj.spec.refresh else float(held.expires_at)
        left = when - self.client.clock.time()
        if left <= 0 and not obj.spec.refresh:
            return None
        return min(max(left, SOONEST_S), LATEST_S)

    def status(self, obj: Token) -> Status:
        """When the token was made and when it ends."""
        held = self._held.get(obj.metadata.uid)
        if held is None:
            return obj.status
        return msgspec.structs.replace(
            obj.status,
            issued_at=times.write(held.issued_at),
            expires_at=times.write(held.expires_at),
        )

    def _hold(self, obj: Token, held: Held | None) -> None:
        if held is not None:
            self._held[obj.metadata.uid] = held

    def _no_key(self, space: str, ref: SecretKeySelector) -> Finding:
        name, key = ref.name, ref.key
        if self.world.makes_key(space, name):
            return Finding(None, "CreatingKeys", f"Secret {name} is being made")
        return Finding(
            False,
            "SecretNotFound",
            f"spec.jwtKeyRef: there is no Secret {name} with a key {key} in namespace {space}, or "
            "it is empty. Create it",
        )

    async def _taken_over(self, obj: Token, secret: Secret, key_name: str) -> bool:
        """Make a Secret ours that slurm-operator made: it says there that the key owns it."""
        meta, of = secret.metadata, secret.metadata.controller
        key = self.world.secrets.get(f"{meta.namespace}/{key_name}")
        if of is None or key is None:
            return False
        if not of.is_kind("", "Secret") or of.uid != key.metadata.uid:
            return False
        body: Json = {
            "metadata": {
                "uid": meta.uid,
                "resourceVersion": meta.resource_version,
                "ownerReferences": [owner(obj)],
            }
        }
        with contextlib.suppress(ConflictError, NotFoundError):
            await self.client.patch(SECRETS, meta.namespace, meta.name, body)
            self.events.normal(obj, "TakenOver", f"Secret {meta.name} is this Token's now", "Adopt")
        return True

    async def _tidy(self, obj: Token, name: str) -> None:
        """Take away what was made under another name."""
        for one in self.world.secrets_of.get(obj.metadata.uid):
            if one.metadata.name != name:
                await self.objects.remove(obj, self.events, "Secret", one.metadata.name)


def _ours(obj: Token, secret: Secret) -> bool:
    of = secret.metadata.controller
    return of is not None and of.uid == obj.metadata.uid


def _stays(verdict: Verdict, name: str) -> Finding:
    return Finding(
        False,
        verdict.reason,
        f"The token in Secret {name} is not as declared ({verdict.words}), and spec.refresh is "
        "false: delete the Secret to have a new one made",
    )
