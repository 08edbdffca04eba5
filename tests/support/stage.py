"""A small cluster of every kind in a namespace of its own, on which declarations are tried."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import msgspec

from declarations import samples
from declarations.rendered import manifest, placed
from penstock.api.kubernetes.kinds import CONFIG_MAPS, SECRETS
from penstock.api.kubernetes.meta import Condition, Json
from penstock.kube.client.errors import api_error
from penstock.kube.client.transport import Request
from penstock.render.parts.digest import digest
from penstock.simulation.kubelet.pod_manifests import TEMPLATE
from support.operator_kit import BY_KIND, KINDS, Lab, Running, made

QUIET_S = 0.4
"""No change for so long in a namespace is rest: the operator waits for nothing shorter."""
STILL_S = 8.0
REST_S = 60.0
CONFLICT = 409
STRICT = {"fieldValidation": "Strict"}
"""As kubectl: a field that the schema does not know is rejected."""
SERVED_KINDS = ("Controller", "RestApi", "NodeSet", "LoginSet", "Accounting", "Partition")


@dataclass(frozen=True)
class Observed:
    """What there is in a stage at rest."""

    objects: Mapping[str, Json]
    pods: Mapping[str, str]
    """Uids by name."""


class RestlessError(AssertionError):
    """The operator did not come to rest."""


class Stage:
    """One namespace of a lab."""

    def __init__(self, lab: Lab, running: Running, namespace: str) -> None:
        self.lab = lab
        self.namespace = namespace
        self._running = running
        self._changed = asyncio.Event()
        for cache in lab.seen.values():
            cache.subscribe(self._observe)

    def _observe(self, old: object, new: object) -> None:
        found = new or old
        if getattr(getattr(found, "metadata", None), "namespace", "") == self.namespace:
            self._changed.set()

    async def build(self) -> None:
        """Make everything, up to ready."""
        put = self.lab.user.apply
        for name in ("keys", "sssd"):
            meta = {"name": name, "namespace": self.namespace}
            secret = {"apiVersion": "v1", "kind": "Secret", "metadata": meta}
            await put(SECRETS, {**secret, "data": samples.SECRET})
        for name, data in samples.CONFIG_MAPS.items():
            meta = {"name": name, "namespace": self.namespace}
            files = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}
            await put(CONFIG_MAPS, files)
        for kind, spec in samples.BASE.items():
            await self.lab.apply(
                placed(manifest(kind, spec), self.namespace), namespace=self.namespace
            )
        for kind in SERVED_KINDS:
            await self.lab.until(
                lambda kind=kind: self.lab.ready(kind, samples.NAMES[kind], self.namespace),
                within=120,
            )

    async def declare(self, kind: str, spec: Json) -> str:
        """`kubectl replace`; the words of the API server when it rejects, else nothing."""
        resource, name = BY_KIND[kind], samples.NAMES[kind]
        path = resource.path(self.namespace, name)
        while True:
            raw = await self.lab.client.get_raw(resource, self.namespace, name)
            live = msgspec.json.decode(raw)
            body = {**live, "spec": placed(spec, self.namespace)}
            body["metadata"].pop("managedFields", None)
            answer = await self.lab.client.transport.send(
                Request("PUT", path, STRICT, msgspec.json.encode(body))
            )
            if answer.status < 300:
                await self._shown(kind, msgspec.json.decode(answer.body)["metadata"])
                return ""
            if answer.status != CONFLICT:
                error = api_error(answer.status, answer.body)
                return f"{error.code} {error}"

    async def _shown(self, kind: str, meta: Json) -> None:
        """Wait until the test's own caches show the declaration."""
        async with asyncio.timeout(REST_S):
            while self.object(kind)["metadata"]["generation"] < meta["generation"]:
                await self._change(0.2)

    def object(self, kind: str) -> Json:
        """An object of the stage as it is now."""
        return self.lab.get(kind, samples.NAMES[kind], self.namespace) or {}

    def writes(self) -> int:
        """Writes of the operator in this namespace so far, but for events."""
        space = f"/namespaces/{self.namespace}/"
        return sum(1 for one in self._running.writes if space in one and "/events" not in one)

    async def rest(self) -> None:
        """Wait until all is reported, the kubelets are done, and nothing changes.

        Kubelets that are not done and do nothing for `STILL_S` never will be: some declarations
        make pods that Kubernetes rejects. Raises RestlessError.
        """
        try:
            async with asyncio.timeout(REST_S):
                still = 0.0
                while still < STILL_S:
                    if await self._change(QUIET_S):
                        still = 0.0
                    elif not self.untold() and not self._busy():
                        return
                    else:
                        still += QUIET_S
                if self.untold():
                    raise RestlessError(f"nothing is told of {self.untold()}")
        except TimeoutError:
            raise RestlessError(f"no rest after {REST_S} s: {self.untold()}") from None

    async def well(self, kind: str) -> None:
        """Wait until an object is ready. Raises RestlessError with its conditions."""
        try:
            async with asyncio.timeout(REST_S):
                while not self.lab.ready(kind, samples.NAMES[kind], self.namespace):
                    await self._change(QUIET_S)
        except TimeoutError:
            told = self.conditions(kind).get("Ready")
            raise RestlessError(f"not ready after {REST_S} s: {told}") from None

    def _busy(self) -> bool:
        """Whether kubelets, or slurmctld with a changed file, have something to do yet."""
        status: Json = self.object("Controller").get("status", {})
        if status.get("effectiveConfigHash") != status.get("configHash"):
            return True
        pods = {pod["metadata"]["name"]: pod for pod in self.lab.all("Pod", self.namespace)}
        if not all(_runs(pod) for pod in pods.values()):
            return True
        for kind in ("StatefulSet", "Deployment"):
            for name in self.lab.names(kind, self.namespace):
                one = self.lab.seen[kind].get(f"{self.namespace}/{name}")
                if one is None:
                    return True
                template = digest(one.spec.template)
                found = [pods.get(f"{name}-{at}") for at in range(one.spec.replicas or 0)]
                if any(
                    pod is None or pod["metadata"]["annotations"].get(TEMPLATE) != template
                    for pod in found
                ):
                    return True
        return False

    async def eventually(self, condition: Callable[[], bool]) -> None:
        """Wait until it is so, or for long.

        What becomes of one object at once, as a partition in slurmctld, comes to another later.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STILL_S):
                while not condition():
                    await self._change(QUIET_S)

    async def _change(self, within: float) -> bool:
        self._changed.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within):
                await self._changed.wait()
        return self._changed.is_set()

    def untold(self) -> list[str]:
        """Objects whose status is about an older declaration."""
        return [
            f"{one.kind} {found['metadata']['generation']}"
            for one in KINDS
            if one.kind in samples.NAMES
            if (found := self.object(one.kind))
            and found.get("status", {}).get("observedGeneration") != found["metadata"]["generation"]
        ]

    def seen(self) -> Observed:
        """What there is now."""
        pods = {
            pod["metadata"]["name"]: pod["metadata"]["uid"]
            for pod in self.lab.all("Pod", self.namespace)
        }
        return Observed(made(self.lab, self.namespace), pods)

    def conditions(self, kind: str) -> dict[str, Condition]:
        """Conditions of an object, by type."""
        found = self.lab.seen[kind].get(f"{self.namespace}/{samples.NAMES[kind]}")
        every: tuple[Condition, ...] = found.status.conditions if found is not None else ()
        return {one.type: one for one in every}


def _runs(pod: Json) -> bool:
    told = pod.get("status", {}).get("conditions", ())
    ready = any(one["type"] == "Ready" and one["status"] == "True" for one in told)
    return ready and not pod["metadata"].get("deletionTimestamp")
