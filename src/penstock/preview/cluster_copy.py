"""What a cluster has now, as far as the operator looks: Kubernetes' objects and Slurm's word."""

from __future__ import annotations

import asyncio
import base64
import binascii
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar
from urllib.parse import parse_qsl, urlsplit

import msgspec

from penstock.api.kubernetes.kinds import DEPLOYMENTS, SECRETS
from penstock.api.kubernetes.meta import Json, KubeObject
from penstock.api.kubernetes.resource import Resource
from penstock.api.slinky import names
from penstock.api.slinky.controller import CONTROLLERS, Controller
from penstock.api.slinky.restapi import RESTAPIS, RestApi
from penstock.controllers.caches.store import CacheStore
from penstock.controllers.observed.members import cluster_keys
from penstock.controllers.observed.slinky_caches import SlinkyCaches
from penstock.controllers.observed.slinky_endpoints import oldest_restapi
from penstock.controllers.runtime.apis import SLINKY
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
from penstock.slurm.rest.client import Slurmrestd
from penstock.slurm.rest.errors import SlurmError
from penstock.slurm.rest.http import Answer, unfenced
from penstock.slurm.state import Job, Node

OPERATOR = "penstock.dev/component=operator"
"""The Deployment has another name with each chart's release; this it has always."""
T = TypeVar("T", bound=KubeObject)
Key = tuple[str, str]
"""Namespace and name."""


@dataclass(frozen=True, slots=True)
class Slurm:
    """What one cluster's slurmctld knows."""

    nodes: tuple[Node, ...]
    jobs: tuple[Job, ...]


@dataclass(frozen=True, slots=True)
class ClusterCopy:
    """A copy of the observed state: objects by resource (`group/plural`), Slurm by Controller.

    `slurm` has the reason instead of the state if Slurm could not be asked.
    """

    objects: Mapping[str, Mapping[Key, Json]]
    slurm: Mapping[str, Slurm | str] = field(default_factory=dict[str, "Slurm | str"])
    settings: Settings = field(default_factory=Settings)
    absent: frozenset[str] = frozenset()
    """Resources that the cluster does not have."""


async def copy_cluster(client: Client, namespaces: Iterable[str]) -> ClusterCopy:
    """Copy what the operator would look at in these namespaces. Raises KubeError."""
    spaces = tuple(dict.fromkeys(namespaces))
    settings = await operator_settings(client)
    manager = Manager(client)
    SlinkyCaches(CacheStore(manager))
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
    return replace(live, slurm=await _slurms(client, live))


async def operator_settings(client: Client) -> Settings:
    """The settings of the operator that leads Slinky's clusters; the usual ones without one."""
    for deployment in (await list_all(client, DEPLOYMENTS, Selector(None, OPERATOR)))[0]:
        obj: Json = msgspec.json.decode(deployment)
        container: Json = obj["spec"]["template"]["spec"]["containers"][0]
        env = {one["name"]: one.get("value", "") for one in container.get("env", ())}
        settings = parse(container.get("args", ()), env)
        # Another operator of the cluster may lead for the other API.
        if SLINKY in settings.apis:
            # A simulated run has no other candidate and serves no webhook.
            return replace(settings, apis=(SLINKY,), leader_elect=False, webhooks=Webhooks())
    return Settings(apis=(SLINKY,))


async def _slurms(client: Client, live: ClusterCopy) -> dict[str, Slurm | str]:
    controllers = _decoded(live, CONTROLLERS)
    restapis = _decoded(live, RESTAPIS)
    found: dict[str, Slurm | str] = {}
    for one in controllers:
        key = one.metadata.key
        mine = tuple(rest for rest in restapis if key in cluster_keys(rest))
        found[key] = await _slurm(client, one, oldest_restapi(mine))
    return found


async def _slurm(client: Client, controller: Controller, restapi: RestApi | None) -> Slurm | str:
    """Ask its slurmrestd through the API server, which reaches Services when we do not."""
    space = controller.metadata.namespace
    if restapi is None:
        return f"no RestApi refers to Controller {controller.metadata.name}"
    ref = names.jwt_key_ref(controller)
    try:
        secret = await client.get(SECRETS, space, ref.name)
        key = base64.b64decode((secret.data or {}).get(ref.key, ""))
        rest = Slurmrestd(
            f"http://{names.restapi_service(restapi)}",
            Tokens(key, time.time),
            exchange=_Proxied(client, space, restapi).exchange,
        )
        nodes, jobs = await asyncio.gather(rest.nodes(), rest.jobs())
    except (KubeError, SlurmError, binascii.Error) as error:
        return str(error)
    return Slurm(nodes.items if nodes else (), jobs.items if jobs else ())


class _Proxied:
    """Requests to a RestApi's Service by way of the API server.

    Source: Kubernetes documentation, "Access Services Running on Clusters".
    """

    def __init__(self, client: Client, namespace: str, restapi: RestApi) -> None:
        self._client = client
        name = names.restapi_service(restapi)
        self._base = f"/api/v1/namespaces/{namespace}/services/http:{name}:slurmrestd/proxy"

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


def _decoded(live: ClusterCopy, resource: Resource[T]) -> list[T]:
    found = live.objects.get(f"{resource.group}/{resource.plural}", {})
    return [msgspec.convert(obj, resource.type) for obj in found.values()]
