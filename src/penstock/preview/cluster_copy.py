"""What a cluster has now, as far as the operator looks: Kubernetes' objects and Slurm's word."""

from __future__ import annotations

import asyncio
import base64
import binascii
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import msgspec

from penstock.api.kubernetes.kinds import DEPLOYMENTS, SECRETS
from penstock.api.kubernetes.meta import Json
from penstock.controllers.runtime.settings import Settings, Webhooks, parse
from penstock.controllers.runtime.slurm_connections import Tokens
from penstock.kube import (
    Client,
    ForbiddenError,
    KubeError,
    Manager,
    NotFoundError,
    Request,
    Selector,
)
from penstock.kube.client.client import list_all
from penstock.preview.previewed_api import PreviewedApi
from penstock.preview.state import ClusterCopy, Key, Slurm, SlurmService
from penstock.slurm.rest.client import Slurmrestd
from penstock.slurm.rest.errors import SlurmError
from penstock.slurm.rest.http import Answer, unfenced

OPERATOR = "penstock.dev/component=operator"
"""The Deployment has another name with each chart's release; this it has always."""


async def copy_cluster(
    client: Client, namespaces: Iterable[str], api: PreviewedApi[Any]
) -> ClusterCopy:
    """Copy what the operator would look at in these namespaces. Raises KubeError."""
    spaces = tuple(dict.fromkeys(namespaces))
    settings = await operator_settings(client, api.group)
    manager = Manager(client)
    api.store(manager)
    found: dict[str, dict[Key, Json]] = {}
    absent = set[str]()
    for resource, labels in manager.watched:
        scopes = spaces if resource.namespaced else (None,)
        held = found.setdefault(f"{resource.group}/{resource.plural}", {})
        for space in scopes:
            try:
                items, _ = await list_all(client, resource, Selector(space, labels))
            except (NotFoundError, ForbiddenError) as error:
                forbidden = isinstance(error, ForbiddenError) and not resource.forbidden_is_absent
                if forbidden or not resource.optional:
                    raise
                absent.add(f"{resource.group}/{resource.plural}")
                continue
            for item in items:
                obj: Json = msgspec.json.decode(item)
                obj = {"apiVersion": resource.api_version, "kind": resource.kind, **obj}
                held[obj["metadata"].get("namespace", ""), obj["metadata"]["name"]] = obj
    live = ClusterCopy(found, settings=settings, absent=frozenset(absent))
    return replace(live, slurm=await _slurms(client, api.services(live.objects)))


async def is_served(client: Client, api: PreviewedApi[Any], namespace: str) -> bool:
    """Whether the cluster has the kinds of an API. Raises KubeError when it cannot be asked."""
    try:
        await client.list(api.cluster_kind, Selector(namespace))
    except NotFoundError:
        return False
    return True


async def operator_settings(client: Client, group: str) -> Settings:
    """The settings of the operator that leads clusters of an API; the usual ones without one."""
    for deployment in (await list_all(client, DEPLOYMENTS, Selector(None, OPERATOR)))[0]:
        obj: Json = msgspec.json.decode(deployment)
        container: Json = obj["spec"]["template"]["spec"]["containers"][0]
        env = {one["name"]: one.get("value", "") for one in container.get("env", ())}
        settings = parse(container.get("args", ()), env)
        # Another operator of the cluster may lead for the other API.
        if group in settings.apis:
            # A simulated run has no other candidate and serves no webhook.
            return replace(settings, apis=(group,), leader_elect=False, webhooks=Webhooks())
    return Settings(apis=(group,))


async def _slurms(
    client: Client, services: Mapping[str, SlurmService | str]
) -> dict[str, Slurm | str]:
    return {
        key: one if isinstance(one, str) else await _slurm(client, one)
        for key, one in services.items()
    }


async def _slurm(client: Client, of: SlurmService) -> Slurm | str:
    """Ask a slurmrestd through the API server, which reaches Services when we do not."""
    try:
        secret = await client.get(SECRETS, of.namespace, of.key.name)
        key = base64.b64decode((secret.data or {}).get(of.key.key, ""))
        rest = Slurmrestd(
            f"http://{of.service}",
            Tokens(key, time.time, of.user),
            exchange=_Proxied(client, of).exchange,
        )
        nodes, jobs = await asyncio.gather(rest.nodes(), rest.jobs())
    except (KubeError, SlurmError, binascii.Error) as error:
        return str(error)
    return Slurm(nodes.items if nodes else (), jobs.items if jobs else ())


class _Proxied:
    """Requests to a slurmrestd's Service by way of the API server.

    Source: Kubernetes documentation, "Access Services Running on Clusters".
    """

    def __init__(self, client: Client, of: SlurmService) -> None:
        self._client = client
        self._base = f"/api/v1/namespaces/{of.namespace}/services/http:{of.service}/proxy"

    async def exchange(
        self,
        url: str,
        method: str,
        headers: Mapping[str, str],
        body: bytes,
        fence: Callable[[], None] = unfenced,
        /,
    ) -> Answer:
        fence()
        parts = urlsplit(url)
        request = Request(
            method,
            self._base + parts.path,
            dict(parse_qsl(parts.query)),
            body,
            headers=headers,
        )
        answer = await self._client.transport.send(request)
        text = answer.body[:1] in (b"{", b"[")
        return Answer(answer.status, "application/json" if text else "text/plain", answer.body)
