"""The simulated API server: requests in, answers out, at once and without waiting.

It serves every resource that is asked for. What differs by kind is in `kinds`; there are no
defaults, no validation beyond what is named here, and no admission.
Source: Kubernetes API concepts; API reference of each kind.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any, cast

import msgspec

from penstock.api.kubernetes.meta import Json
from penstock.kube.client.transport import Request, Response
from penstock.simulation.apiserver import eviction, fields, patches
from penstock.simulation.apiserver.address import Address, parse
from penstock.simulation.apiserver.garbage import GarbageCollector, Target
from penstock.simulation.apiserver.selectors import matcher
from penstock.simulation.apiserver.status import StatusError, failure, status_body
from penstock.simulation.apiserver.store import Key, Store, Stored

PODS = "/pods"
BUDGETS = "policy/poddisruptionbudgets"
UNTRACKED = frozenset(
    {PODS, "/nodes", "events.k8s.io/events", "coordination.k8s.io/leases", "/secrets"}
)
"""Resources whose field owners nobody here asks for: keeping them costs time."""
COLLECTOR = "system:serviceaccount:kube-system:generic-garbage-collector"
SERVERS_OWN = ("uid", "creationTimestamp", "namespace", "name", "generation", "selfLink")
ORPHAN = "orphan"
"""Finalizer of an object whose dependents stay when it is deleted."""
SERVERS_OWN_AT_DELETION = ("deletionTimestamp", "deletionGracePeriodSeconds")
Deleting = Callable[[str, Json, str], None]


Logs = Callable[[str, str, str], "str | None"]
"""The log of a pod's container by namespace, name and container, as whoever runs it has it."""


def _no_logs(*_: str) -> str | None:
    return None


class ApiServer:
    """Objects and the verbs on them. `now` gives Unix seconds.

    `deleting` are called with user, object and resource before a delete takes its course; what
    they raise goes to whoever called `handle`. `collect_after` are the seconds that the garbage
    collector takes, counted by the running loop.
    """

    def __init__(self, now: Callable[[], float], *, collect_after: float = 0.5) -> None:
        self.store = Store()
        self.deleting: list[Deleting] = []
        self.absent: set[str] = set()
        """Resources (`group/plural`) that it does not have."""
        self.logs: Logs = _no_logs
        self.now = now
        self.collect_after = collect_after
        self._made = 0
        self._garbage = GarbageCollector(self.store, self._collect)

    # For those who live beside it: kubelets, controllers, users

    def find(self, resource: str, namespace: str, name: str) -> Json | None:
        """An object as it is now."""
        stored = self.store.get(resource, (namespace, name))
        return stored.obj if stored else None

    def objects(self, resource: str, namespace: str = "") -> list[Json]:
        """All objects of a resource, by name."""
        return [stored.obj for stored in self.store.all(resource, namespace)]

    def have_elsewhere(self, uids: Iterable[str]) -> None:
        """Owners that exist, though this server has none of their kind: what they own stays."""
        self._garbage.have_elsewhere(uids)

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        kind: str = "merge",
        user: str = "system",
    ) -> Response:
        """One request by somebody who needs no connection."""
        types = {"merge": "application/merge-patch+json", "apply": "application/apply-patch+yaml"}
        types["strategic"] = "application/strategic-merge-patch+json"
        encoded = msgspec.json.encode(body) if body is not None else b""
        manager = {"fieldManager": user, "force": "true"}
        return self.handle(Request(method, path, manager, encoded, types[kind]), user)

    # Requests

    def handle(self, request: Request, user: str) -> Response:
        """Answer one request that is not a watch."""
        address = parse(request.path)
        try:
            self.check(address)
            match request.method:
                case "GET":
                    return self._get(address, request)
                case "POST":
                    return self._post(address, request, user)
                case "PATCH":
                    return self._patch(address, request, user)
                case "DELETE":
                    return self._delete(address, request, user)
                case other:
                    return failure(405, f"{other} is not served", "MethodNotAllowed")
        except StatusError as refused:
            return refused.response

    def check(self, address: Address) -> None:
        """Raises StatusError for a resource that it does not have."""
        if address.resource in self.absent:
            raise StatusError(404, "404 page not found")

    def list_page(self, address: Address, request: Request) -> tuple[list[Stored], str]:
        """The objects a list asks for, and its continue token."""
        matches = matcher(
            request.params.get("labelSelector", ""), request.params.get("fieldSelector", "")
        )
        found = self.store.all(address.resource, address.namespace)
        if matches is not None:
            found = [one for one in found if matches(one.obj)]
        limit = int(request.params.get("limit", "0"))
        version, _, skip = request.params.get("continue", "0:0").partition(":")
        if int(version) and int(version) < self.store.oldest:
            raise StatusError(410, "the continue token is too old")
        start = int(skip)
        more = bool(limit) and start + limit < len(found)
        page = found[start : start + limit] if limit else found
        return page, f"{self.store.version}:{start + limit}" if more else ""

    def _get(self, address: Address, request: Request) -> Response:
        if address.sub == "log":
            text = self.logs(*address.key, request.params.get("container", ""))
            if text is None:
                raise StatusError(404, f"there is no log of {address.name}", "NotFound")
            return Response(200, text.encode())
        if address.name:
            return Response(200, self._must(address).raw)
        page, token = self.list_page(address, request)
        meta = {"resourceVersion": str(self.store.version)} | ({"continue": token} if token else {})
        items = b",".join(one.raw for one in page)
        head = b'{"kind":"List","metadata":' + msgspec.json.encode(meta)
        return Response(200, head + b',"items":[' + items + b"]}")

    def _post(self, address: Address, request: Request, user: str) -> Response:
        manifest: Json = msgspec.json.decode(request.body)
        if address.sub == "binding":
            return self._bind(address, manifest)
        if address.sub == "eviction":
            return self._evict(address, user)
        name: str = manifest["metadata"].get("name") or ""
        if not name:
            name = f"{manifest['metadata']['generateName']}{self._made:05d}"
        key = (address.namespace, name)
        if self.store.get(address.resource, key) is not None:
            raise StatusError(409, f"{address.resource} {name} already exists", "AlreadyExists")
        if address.resource == PODS:
            manifest = {**manifest, "status": {"phase": "Pending"}}
        elif address.resource != "/nodes":
            manifest.pop("status", None)
        made = self._new(address, name, manifest)
        if address.resource not in UNTRACKED:
            made = fields.after_update({}, made, _manager(request, user), self._stamp())
        return Response(201, self.store.put(address.resource, key, made).raw)

    def _patch(self, address: Address, request: Request, user: str) -> Response:
        applying = "apply-patch" in request.content_type
        stored = self.store.get(address.resource, address.key)
        if stored is None:
            if not applying:
                raise StatusError(404, f"{request.path} not found")
            return self._apply_new(address, request, user)
        old = stored.obj
        patch: Any = msgspec.json.decode(request.body)
        if applying:
            new = self._applied(old, patch, request, user)
        elif "json-patch" in request.content_type:
            try:
                new = patches.json_patch(old, patch)
            except patches.PatchError as error:
                raise StatusError(422, str(error)) from None
        elif "strategic" in request.content_type:
            new = patches.strategic(old, patch)
        else:
            new = cast("Json", patches.merge(old, patch))
        if not applying:
            _check(new["metadata"], old["metadata"], patch=True)
        new = self._admit(address, old, new)
        if new == old:
            return Response(200, stored.raw)
        if not applying and address.resource not in UNTRACKED and not address.sub:
            handed = new["metadata"].get("managedFields") != old["metadata"].get("managedFields")
            if not handed:
                new = fields.after_update(old, new, _manager(request, user), self._stamp())
        released = "deletionTimestamp" in new["metadata"] and not new["metadata"].get("finalizers")
        if released and address.resource != PODS:
            self.store.put(address.resource, address.key, new)
            return Response(200, self.store.remove(address.resource, address.key).raw)
        return Response(200, self.store.put(address.resource, address.key, new).raw)

    def _applied(self, old: Json, manifest: Json, request: Request, user: str) -> Json:
        _check(manifest["metadata"], old["metadata"])
        force = request.params.get("force") == "true"
        try:
            return fields.apply(old, manifest, _manager(request, user), self._stamp(), force=force)
        except fields.OwnedByOthersError as error:
            raise StatusError(409, f"conflict with {error}") from None

    def _apply_new(self, address: Address, request: Request, user: str) -> Response:
        manifest: Json = msgspec.json.decode(request.body)
        if manifest["metadata"].get("uid"):
            raise StatusError(409, "uid in precondition: the object does not exist")
        bare = self._new(address, address.name, {**manifest, "metadata": {}})
        bare = {k: v for k, v in bare.items() if k in {"apiVersion", "kind", "metadata"}}
        new = fields.apply(bare, manifest, _manager(request, user), self._stamp(), force=True)
        return Response(201, self.store.put(address.resource, address.key, new).raw)

    def _admit(self, address: Address, old: Json, new: Json) -> Json:
        """Keep what this endpoint may not change, and count generations."""
        meta, had = new["metadata"], old["metadata"]
        own = {key: had[key] for key in (*SERVERS_OWN, "resourceVersion") if key in had}
        own |= {key: had[key] for key in SERVERS_OWN_AT_DELETION if key in had}
        kept = {
            k: v
            for k, v in meta.items()
            if k not in own and k not in SERVERS_OWN_AT_DELETION and v not in ({}, [])
        }
        if address.sub == "status":
            if address.resource != "/nodes":
                kept = {k: v for k, v in had.items() if k not in own}
            # Kubelets write annotations by the status of their node.
            new = {**old, "status": new.get("status", {})}
        elif address.resource != "/nodes":
            new = {k: v for k, v in new.items() if k != "status"}
            if "status" in old:
                new["status"] = old["status"]
        new = {**new, "metadata": {**kept, **own}}
        if {**new, "metadata": 0, "status": 0} != {**old, "metadata": 0, "status": 0}:
            new["metadata"]["generation"] = had.get("generation", 1) + 1
        # Keys in the order they had, so that equal objects are equal bytes.
        return {**{k: new[k] for k in old if k in new}, **new}

    def _delete(self, address: Address, request: Request, user: str) -> Response:
        stored = self._must(address)
        options: Json = msgspec.json.decode(request.body) if request.body else {}
        meta = stored.obj["metadata"]
        preconditions: dict[str, str] = options.get("preconditions") or {}
        for field, asked in preconditions.items():
            if asked != meta[field]:
                words = f"the {field} in the precondition ({asked}) is not {meta[field]}"
                raise StatusError(409, words)
        for hook in self.deleting:
            hook(user, stored.obj, address.resource)
        grace = _grace(stored.obj, options) if address.resource == PODS else 0
        if options.get("propagationPolicy") == "Orphan" and "deletionTimestamp" not in meta:
            finalizers = [*(meta.get("finalizers") or ()), ORPHAN]
            held = {**stored.obj, "metadata": {**meta, "finalizers": finalizers}}
            target = (address.resource, address.key, meta["uid"])
            later = asyncio.get_running_loop().call_later
            later(self.collect_after, self._orphan, target)
            return self._end(address.resource, address.key, held, grace)
        return self._end(address.resource, address.key, stored.obj, grace)

    def _end(self, resource: str, key: Key, obj: Json, grace: int) -> Response:
        meta = obj["metadata"]
        deleting = "deletionTimestamp" in meta
        if not meta.get("finalizers") and not grace:
            return Response(200, self.store.remove(resource, key).raw)
        if deleting and (not grace or meta.get("deletionGracePeriodSeconds", 0) <= grace):
            return Response(200, self._raw(resource, key))
        marked: Json = {**meta, "deletionTimestamp": self._stamp(grace)}
        marked["deletionGracePeriodSeconds"] = grace
        marked["generation"] = meta.get("generation", 1) + 1
        return Response(200, self.store.put(resource, key, {**obj, "metadata": marked}).raw)

    def _raw(self, resource: str, key: Key) -> bytes:
        stored = self.store.get(resource, key)
        return stored.raw if stored else status_body(200, "")

    def _bind(self, address: Address, binding: Json) -> Response:
        pod = self._must(address).obj
        if pod["metadata"].get("deletionTimestamp") or pod["spec"].get("nodeName"):
            raise StatusError(409, f"pod {address.name} is being deleted or already assigned")
        spec = {**pod["spec"], "nodeName": binding["target"]["name"]}
        scheduled = {"type": "PodScheduled", "status": "True"}
        status = {**pod.get("status", {}), "conditions": [scheduled]}
        self.store.put(PODS, address.key, {**pod, "spec": spec, "status": status})
        return Response(201, status_body(201, ""))

    def _evict(self, address: Address, user: str) -> Response:
        pod = self._must(address).obj
        budgets, pods = (
            self.objects(BUDGETS, address.namespace),
            self.objects(PODS, address.namespace),
        )
        why = eviction.rejection(pod, budgets, pods, self._scale)
        if why is not None:
            raise StatusError(429, why)
        return self._delete(address, Request("DELETE", "/"), user)

    def _scale(self, owner: Json, namespace: str) -> int | None:
        """The answer of an owner's scale subresource."""
        group = owner["apiVersion"].rpartition("/")[0]
        found = self.find(f"{group}/{owner['kind'].lower()}s", namespace, owner["name"])
        if found is None or found["metadata"]["uid"] != owner["uid"]:
            return None
        replicas: int | None = found["spec"].get("replicas")
        return replicas

    def _collect(self, target: Target) -> None:
        asyncio.get_running_loop().call_later(self.collect_after, self._collect_now, target)

    def _collect_now(self, target: Target) -> None:
        resource, key, uid = target
        stored = self.store.get(resource, key)
        if stored is None or stored.obj["metadata"]["uid"] != uid:
            return
        if self._garbage.orphaned(target):
            for hook in self.deleting:
                hook(COLLECTOR, stored.obj, resource)
            grace = _grace(stored.obj, {}) if resource == PODS else 0
            self._end(resource, key, stored.obj, grace)

    def _orphan(self, target: Target) -> None:
        """Take an object off the owners of its dependents, and then its finalizer off itself."""
        resource, key, uid = target
        for kind, name, _ in self._garbage.owned(uid):
            if (found := self.store.get(kind, name)) is not None:
                meta = found.obj["metadata"]
                left = [one for one in meta["ownerReferences"] if one["uid"] != uid]
                kept = {k: v for k, v in meta.items() if k != "ownerReferences"}
                kept |= {"ownerReferences": left} if left else {}
                self.store.put(kind, name, {**found.obj, "metadata": kept})
        stored = self.store.get(resource, key)
        if stored is None or stored.obj["metadata"]["uid"] != uid:
            return
        meta = stored.obj["metadata"]
        left = [one for one in meta.get("finalizers") or () if one != ORPHAN]
        self.store.put(resource, key, {**stored.obj, "metadata": {**meta, "finalizers": left}})
        if not left:
            self.store.remove(resource, key)

    def _must(self, address: Address) -> Stored:
        stored = self.store.get(address.resource, address.key)
        if stored is None:
            raise StatusError(404, f"{address.resource} {address.name} not found")
        return stored

    def _new(self, address: Address, name: str, manifest: Json) -> Json:
        self._made += 1
        given = {k: v for k, v in manifest["metadata"].items() if k != "generateName"}
        meta: Json = {
            **given,
            "name": name,
            "uid": f"{self._made:08x}-0000-4000-8000-000000000000",
            "creationTimestamp": self._stamp(),
            "generation": 1,
        }
        if address.namespace:
            meta["namespace"] = address.namespace
        kind = manifest.get("kind", "")
        return {**manifest, "apiVersion": address.api_version, "kind": kind, "metadata": meta}

    def _stamp(self, later: float = 0.0) -> str:
        when = datetime.fromtimestamp(self.now() + later, UTC)
        return when.strftime("%Y-%m-%dT%H:%M:%SZ")


def _manager(request: Request, user: str) -> str:
    return request.params.get("fieldManager", user)


def _check(asked: Json, had: Json, *, patch: bool = False) -> None:
    """Whether uid and resourceVersion, where a request names them, are the object's."""
    for field in ("resourceVersion", "uid"):
        if asked.get(field) and asked[field] != had[field]:
            words = f"{field} {asked[field]} is not {had[field]}"
            if patch and field == "uid":
                raise StatusError(422, words, field="metadata.uid")
            raise StatusError(409, words)


def _grace(pod: Json, options: Json) -> int:
    """Seconds that a pod gets to end; none when nothing of it runs."""
    status: Json = pod.get("status") or {}
    ended = status.get("phase") in {"Failed", "Succeeded"}
    if ended or not pod["spec"].get("nodeName"):
        return 0
    asked = options.get("gracePeriodSeconds")
    return asked if asked is not None else pod["spec"].get("terminationGracePeriodSeconds", 30)
