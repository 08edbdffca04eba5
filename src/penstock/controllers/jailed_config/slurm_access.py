"""The slurmrestd of the cluster, with tokens signed by the key in its Secret."""

from __future__ import annotations

import base64
import binascii

from penstock.api.kubernetes.kinds import SECRETS
from penstock.api.nebius import names
from penstock.kube import Client, KubeError, NotFoundError, NotLeaderError
from penstock.slurm.auth import jwt
from penstock.slurm.rest.client import Slurmrestd
from penstock.slurm.rest.errors import AuthError
from penstock.slurm.rest.http import Exchange

USER = "slurm"
LIFETIME_S = 900


class SlurmAccess:
    """Connections to the slurmrestd at `url` of a cluster, as SlurmUser."""

    def __init__(
        self, client: Client, namespace: str, cluster: str, url: str, exchange: Exchange
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._secret = names.jwt_secret(cluster)
        self._key = b""
        self._rest = Slurmrestd(url, self._token, exchange=exchange, fence=self._fence)

    async def slurmrestd(self) -> Slurmrestd:
        """The client, with the key that the Secret has now.

        Raises AuthError, which is a SlurmError, while there is no usable key.
        """
        self._key = await self._read_key()
        return self._rest

    async def _read_key(self) -> bytes:
        secret = self._secret
        try:
            found = await self._client.get(SECRETS, self._namespace, secret)
            return base64.b64decode((found.data or {})[names.JWT_KEY], validate=True)
        except NotFoundError as error:
            raise AuthError(f"Secret {secret} does not exist") from error
        except KubeError as error:
            raise AuthError(f"Secret {secret} cannot be read: {error}") from error
        except (KeyError, binascii.Error) as error:
            raise AuthError(f"Secret {secret} has no usable key {names.JWT_KEY}") from error

    def _token(self) -> str:
        return jwt.mint(self._key, USER, LIFETIME_S, self._client.clock.time())

    def _fence(self) -> None:
        """Keep a reconfigure back once this process no longer leads."""
        if self._client.guard is not None and not self._client.guard():
            raise NotLeaderError("slurmrestd: not the leader")
