"""The keys of a cluster for which the user names no Secret, and whose keys stay."""

from __future__ import annotations

import contextlib

import msgspec

from penstock.api.cluster import labels as app_labels
from penstock.api.kubernetes.kinds import SECRETS, Secret
from penstock.api.slinky import names
from penstock.api.slinky.controller import Controller
from penstock.catalog.event import Event
from penstock.catalog.marks import kubernetes
from penstock.controllers.runtime.reconciler import Context
from penstock.controllers.runtime.report import Events
from penstock.kube import ConflictError, NotFoundError
from penstock.render.parts.key_secret import generate, key_secret
from penstock.slurm.auth.key_files import JWT_KEY, SLURM_KEY


class GeneratedKeys:
    """Makes slurm.key and jwt.key once, and never writes them again."""

    def __init__(self, context: Context) -> None:
        self._context = context

    async def apply(self, controller: Controller, events: Events) -> None:
        """Generate the keys for which the user names no Secret."""
        spec, space = controller.spec, controller.metadata.namespace
        wanted: list[tuple[str, str]] = []
        if spec.slurm_key_ref is None and spec.munge_key_ref is None:
            wanted.append((names.generated_slurm_key(controller), SLURM_KEY))
        if spec.effective_jwt_key_ref is None:
            wanted.append((names.generated_jwt_key(controller), JWT_KEY))
        labels = app_labels.labels("slurmctld", controller.metadata.name)
        await self._keep(controller, events)
        for name, file in wanted:
            found = self._context.caches.secrets.get(f"{space}/{name}")
            if found is None:
                manifest = key_secret(
                    controller, name, {file: generate()}, labels, stays=spec.persistent
                )
                await self._context.objects.create_secret(controller, events, manifest)
            elif spec.persistent:
                await self._release(controller, events, found)

    async def _release(self, controller: Controller, events: Events, secret: Secret) -> None:
        """Remove the owner of a key Secret, so that it outlives its Controller as the PVC does.

        A recreated Controller continues with both, and so do workers and external daemons with the
        key. Secrets of an earlier version have the Controller as owner.
        """
        meta = secret.metadata
        owners = [one for one in meta.owner_references if one.uid != controller.metadata.uid]
        if len(owners) == len(meta.owner_references) or meta.deleting:
            return
        body = {
            "metadata": {
                "uid": meta.uid,
                "resourceVersion": meta.resource_version,
                "ownerReferences": msgspec.to_builtins(owners),
            }
        }
        with contextlib.suppress(NotFoundError, ConflictError):
            await self._context.client.patch(SECRETS, meta.namespace, meta.name, body)
            note = (
                f"Secret {meta.name} stays when the Controller is "
                "deleted, as slurmctld's state does"
            )
            events.normal(controller, Event.KEY_KEPT, note, "Update")

    async def _keep(self, controller: Controller, events: Events) -> None:
        """Have Helm keep the keys: slurm-operator's chart has Secrets for them, ours has none."""
        for ref in (names.slurm_key_ref(controller), names.jwt_key_ref(controller)):
            secret = self._context.caches.secrets.get(f"{controller.metadata.namespace}/{ref.name}")
            if secret is None or not _would_go(secret):
                continue
            keep = {app_labels.HELM_POLICY: app_labels.HELM_KEEP}
            meta = secret.metadata
            body = {"metadata": {"uid": meta.uid, "annotations": keep}}
            with contextlib.suppress(NotFoundError):
                await self._context.client.patch(SECRETS, meta.namespace, meta.name, body)
                note = f"Secret {meta.name} stays when its Helm release is uninstalled"
                events.normal(controller, Event.KEY_KEPT, note, "Update")


def _would_go(secret: Secret) -> bool:
    """Whether it is of a release of the chart `slurm`, which would delete it with the next one."""
    meta = secret.metadata
    return (
        app_labels.is_from_chart(meta.labels)
        and meta.labels.get(kubernetes.CHART.key, "").startswith("slurm-")
        and app_labels.HELM_POLICY not in meta.annotations
        and not meta.deleting
    )
