"""Tokens for slurmrestd: by the key in the cluster's Secret, or of scontrol outside Kubernetes."""

from __future__ import annotations

import asyncio
import base64
import binascii
from abc import ABC, abstractmethod
from typing import Final

from penstock.api.kubernetes.kinds import SECRETS
from penstock.api.nebius import names
from penstock.kube import Client, Clock, KubeError
from penstock.slurm.auth import jwt
from penstock.slurm.rest.errors import AuthError

USER: Final = "slurm"
LIFETIME_S: Final = 900
_SCONTROL_S: Final = 30.0
_SLACK_S: Final = 600
"""Seconds that a token of scontrol is valid beyond the time at which it is replaced."""
_VARIABLE: Final = "SLURM_JWT="


class Tokens(ABC):
    """A token for each request; `renew` is called before each collection."""

    def __init__(self, clock: Clock, interval_s: float) -> None:
        self._clock = clock
        self._interval_s = interval_s
        self._read_at: float | None = None
        self._is_usable = False

    @abstractmethod
    def token(self) -> str:
        """A valid token."""

    @abstractmethod
    async def _read(self) -> None:
        """Read key or token. Raises AuthError."""

    async def renew(self) -> None:
        """Read key or token again when it is due. Raises AuthError while there was none yet."""
        now = self._clock.monotonic()
        if self._read_at is not None and now - self._read_at < self._interval_s:
            return
        try:
            await self._read()
        except AuthError:
            if not self._is_usable:
                raise
            # The last one goes on working while the API server is away.
            return
        self._read_at, self._is_usable = now, True

    def expire(self) -> None:
        """Read it again before the next collection: slurmrestd rejected the token."""
        self._read_at, self._is_usable = None, False


class KeyTokens(Tokens):
    """Tokens signed with the key in the Secret of a SlurmCluster."""

    def __init__(self, client: Client, namespace: str, cluster: str, interval_s: float) -> None:
        super().__init__(client.clock, interval_s)
        self._client = client
        self._namespace = namespace
        self._secret = names.jwt_secret(cluster)
        self._key = b""

    def token(self) -> str:
        """Sign a token."""
        return jwt.mint(self._key, USER, LIFETIME_S, self._clock.time())

    async def _read(self) -> None:
        secret = self._secret
        try:
            found = await self._client.get(SECRETS, self._namespace, secret)
            self._key = base64.b64decode((found.data or {})[names.JWT_KEY], validate=True)
        except KubeError as error:
            raise AuthError(f"Secret {secret} cannot be read: {error}") from error
        except (KeyError, binascii.Error) as error:
            raise AuthError(f"Secret {secret} has no usable key {names.JWT_KEY}") from error


class StaticToken(Tokens):
    """A token that the user gave."""

    def __init__(self, clock: Clock, token: str) -> None:
        super().__init__(clock, float("inf"))
        self._token = token

    def token(self) -> str:
        """Return it."""
        return self._token

    async def _read(self) -> None:
        """It is there."""


class ScontrolTokens(Tokens):
    """Tokens that `scontrol token` makes for the user of this process."""

    def __init__(self, clock: Clock, program: str, interval_s: float) -> None:
        super().__init__(clock, interval_s)
        self._program = program
        self._token = ""

    def token(self) -> str:
        """Return the last one."""
        return self._token

    async def _read(self) -> None:
        lifespan = f"lifespan={int(self._interval_s) + _SLACK_S}"
        try:
            process = await asyncio.create_subprocess_exec(
                self._program,
                "token",
                lifespan,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
        except OSError as error:
            raise AuthError(f"{self._program} cannot be run: {error.strerror}") from error
        try:
            async with asyncio.timeout(_SCONTROL_S):
                out, problem = await process.communicate()
        except TimeoutError as error:
            process.kill()
            await process.wait()
            raise AuthError(f"{self._program} token took more than {_SCONTROL_S:g} s") from error
        text = out.decode(errors="replace").strip()
        if process.returncode or not text.startswith(_VARIABLE):
            words = problem.decode(errors="replace").strip()[:300]
            raise AuthError(f"{self._program} token failed: {words or 'it printed no token'}")
        self._token = text.removeprefix(_VARIABLE)
