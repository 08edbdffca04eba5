"""LoginSet: the login pods of one cluster."""

from __future__ import annotations

import asyncio

import msgspec

from penstock.api.cluster import labels as app_labels
from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.kinds import CONFIG_MAPS, DEPLOYMENTS, PODS, SECRETS, SERVICES
from penstock.api.kubernetes.meta import Json
from penstock.api.kubernetes.spec_parts import Status
from penstock.api.slinky import labels as slinky_labels
from penstock.api.slinky import names
from penstock.api.slinky.controller import CONTROLLERS
from penstock.api.slinky.loginset import LOGINSETS, LoginSet
from penstock.catalog.reasons.keys import KeyReason
from penstock.controllers.advice.overridden_fields import OverriddenFieldDetector
from penstock.controllers.auth.directory import DirectoryMonitor
from penstock.controllers.cluster import adopted_workload as hold
from penstock.controllers.observed.members import LOGINSETS_BY_CLUSTER
from penstock.controllers.observed.references import (
    controllers_using_secret,
    loginsets_using_sssd_conf,
)
from penstock.controllers.observed.watching import (
    any_of,
    indexed,
    instance_of,
    own_key,
    owner_of,
    spec_changed,
)
from penstock.controllers.runtime.reconciler import Reconciler
from penstock.controllers.runtime.slinky_context import SlinkyContext
from penstock.controllers.slinky import chart_labels
from penstock.controllers.slinky.prerequisites import require_cluster, sssd_conf_hash
from penstock.decide.advice import host_network
from penstock.decide.pod.workload import workload
from penstock.kube.runtime.declaration import Watch
from penstock.render.parts import ssh_host_keys as hostkeys
from penstock.render.parts.digest import secret_digest
from penstock.render.slinky.cluster import login as render
from penstock.render.slinky.cluster import sssd
from penstock.translate.slinky.image_sources import image_sources


class LoginSetReconciler(Reconciler[LoginSet]):
    """Brings LoginSets about."""

    name = "loginset"
    resource = LOGINSETS
    watches = (
        Watch(LOGINSETS, own_key),
        Watch(CONTROLLERS, indexed(LOGINSETS_BY_CLUSTER, own_key), spec_changed),
        *(Watch(one, owner_of(LOGINSETS)) for one in (SERVICES, DEPLOYMENTS, CONFIG_MAPS)),
        Watch(PODS, instance_of("login")),
        Watch(
            SECRETS,
            any_of(
                indexed(LOGINSETS_BY_CLUSTER, controllers_using_secret),
                loginsets_using_sssd_conf,
                owner_of(LOGINSETS),
            ),
        ),
    )

    def __init__(self, context: SlinkyContext) -> None:
        super().__init__(context)
        self._caches = context.caches
        self._clusters = context.clusters
        self._secrets = context.secrets
        OverriddenFieldDetector(context, self.resource)
        self._directory_monitor = DirectoryMonitor(context, LOGINSETS, "login")

    async def reconcile_object(self, obj: LoginSet) -> list[Finding]:
        """Make host keys once, then ConfigMap, Service and Deployment."""
        cluster = require_cluster(self._clusters, obj)
        if isinstance(cluster, Finding):
            return [cluster]
        meta = obj.metadata
        sssd_hash = sssd_conf_hash(self._secrets, meta.namespace, obj.spec.sssd_conf_ref)
        if isinstance(sssd_hash, Finding):
            return [sssd_hash]
        keys = self._caches.secrets.get(f"{meta.namespace}/{names.login_host_keys(obj)}")
        if keys is None:
            # A second of CPU: not in the event loop, and not again while the Secret is there.
            made = await asyncio.to_thread(hostkeys.generate)
            await self.objects.create_secret(obj, self.events, render.host_keys(obj, made))
            return [Finding(None, KeyReason.CREATING, "The SSH host keys are being created")]
        hashes = {
            "host_keys_hash": secret_digest(keys.data),
            "sssd_conf_hash": self._hash_kept(obj, sssd_hash),
        }
        manifests = render.objects(cluster, obj, **hashes)
        found = hold.inspect(self.objects, obj, manifests, render.declared(cluster, obj, **hashes))
        await self.objects.apply(obj, self.events, found.apply())
        pods = self._caches.pods_labelled(meta.namespace, "login", meta.name)
        await chart_labels.label(self.client, obj, pods)
        listens = "sshd listens on 22"
        exposed = host_network.findings(obj.spec.template.spec, listens, obj.status.conditions)
        heard = await self._directory_monitor.observe(
            obj, obj.spec.sssd_conf_ref, pods, self.events
        )
        return [
            workload("login", obj.spec.replicas, pods, image_sources(obj)),
            *found.findings,
            *exposed,
            *heard,
        ]

    def _hash_kept(self, obj: LoginSet, found: str) -> str:
        """The hash of sssd.conf for the pods: the one that they have if it means the same file.

        Earlier versions hashed the whole Secret; pods must not restart for another way to count.
        """
        meta, ref = obj.metadata, obj.spec.sssd_conf_ref
        live = self._caches.deployments.raw(f"{meta.namespace}/{names.login_workload(obj)}")
        if live is None or ref is None:
            return found
        pods: Json = live["spec"]["template"].get("metadata") or {}
        marks: Json = pods.get("annotations") or {}
        was: str = marks.get(slinky_labels.SSSD_CONF_HASH) or ""
        whole = self._secrets.hash(meta.namespace, ref)
        return was if was in (whole, sssd.FORMER.get(found)) and was else found

    def requeue_after(self, obj: LoginSet) -> float | None:
        """Return the seconds until sssd's logs are read again; None without a directory."""
        return self._directory_monitor.requeue_after(obj)

    def status(self, obj: LoginSet) -> Status:
        """Replicas and selector, for `kubectl scale` and autoscalers."""
        meta = obj.metadata
        deployment = self._caches.deployments.get(f"{meta.namespace}/{names.login_workload(obj)}")
        selector = app_labels.selector_labels("login", meta.name)
        return msgspec.structs.replace(
            obj.status,
            replicas=(deployment.status.replicas or 0) if deployment is not None else 0,
            selector=app_labels.selector_text(selector),
        )
