"""Accounting: slurmdbd of one or several clusters, or where an outside one is."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.kinds import Pod
from penstock.api.kubernetes.spec_parts import SecretKeySelector
from penstock.api.slinky import names
from penstock.api.slinky.accounting import ACCOUNTINGS, Accounting
from penstock.controllers.cluster import adopted_workload as hold
from penstock.controllers.runtime import chart_labels
from penstock.controllers.runtime.pod_restarter import PodRestarter
from penstock.controllers.runtime.reconciler import Context, Reconciler
from penstock.controllers.runtime.report import Events
from penstock.decide.accounting import slurmdbd
from penstock.decide.accounting.slurmdbd import REACHABLE, Said
from penstock.decide.auth.jwks import finding as jwks_finding
from penstock.decide.cluster.connectivity import closed
from penstock.decide.pod.workload import workload
from penstock.kube import KubeError
from penstock.render.parts.digest import digest
from penstock.render.slinky.accounting import slurmdbd as render
from penstock.render.slinky.accounting.slurmdbd import SlurmdbdInputs
from penstock.render.slinky.accounting.slurmdbd_conf import password_problem, slurmdbd_conf
from penstock.slurm.auth.key_rotation import Phase
from penstock.translate.slinky.image_sources import image_sources

LINES = 200
"""Of slurmdbd's log: more than it says of one change."""
DEAF_S = 90.0
"""For so long an answer of the container is waited for: longer than the kubelet takes by itself."""
REFRESH_S = 3.0
"""After which the kubelet is asked once more to look at the files; then after three times that."""
AGAIN_S = 5.0
"""Between two looks at the log of a slurmdbd that waits for its database."""
SELDOM_S = 300.0
"""Between two connections to an outside slurmdbd that answers: it notes each in its log."""
_KINDS = ("StatefulSet", "Service", "Secret")


@dataclass(slots=True)
class _Wait:
    """A changed file on its way to the slurmdbd of one pod."""

    uid: str
    wanted: str
    since: float
    refreshed: int = 0
    handed: bool = False
    """Whether the pod was told of it: else it starts with it, and nothing changes."""


class AccountingReconciler(Reconciler[Accounting]):
    """Brings Accountings about."""

    def __init__(self, context: Context, events: Events) -> None:
        super().__init__(context, ACCOUNTINGS, context.world.accountings, events)
        self._restarter = PodRestarter(context.client)
        self._port_probe = context.port_probe
        self._waits = self.lifetimes.by_key(dict[str, _Wait]())
        self._has = self.lifetimes.by_key(dict[str, tuple[str, str]]())
        """The pod's uid and the hash of the file that its slurmdbd runs with, once it is known."""
        self._soon = self.lifetimes.by_key(dict[str, float]())

    async def reconcile_object(self, obj: Accounting) -> list[Finding]:
        """Make slurmdbd's Secret, Service and StatefulSet; hand over what changed."""
        self._soon.pop(obj.metadata.key, None)
        if obj.spec.external:
            return await self._outside(obj)
        missing = self._missing(obj)
        given = None if missing else self._given(obj)
        if given is None:
            return missing
        found = hold.inspect(
            self.objects,
            obj,
            render.objects(obj, given),
            render.declared(obj, given),
            fits=render.fits(given, self._conf(obj)),
        )
        await self.objects.apply(obj, self.events, found.apply())
        pods = self.world.pods_labelled(obj.metadata.namespace, "slurmdbd", obj.metadata.name)
        await chart_labels.label(self.client, obj, pods)
        runs = workload("slurmdbd", 1, pods, image_sources(obj))
        pod = next((one for one in pods if not one.metadata.deleting), None)
        if found.keeps_pods:
            # Nobody in it tells of the database: a changed file comes with our pod.
            return [runs, Finding(runs.ok or None, "NotAsked", type=REACHABLE), *found.findings]
        if not render.has_own_entrypoint(obj):
            return [runs, *found.findings]
        if pod is None or not _running(pod):
            if pod is not None:
                await self._restart_on_change(obj, pod, given.conf_hash)
            return [runs, Finding(None, "SlurmdbdNotRunning", type=REACHABLE)]
        return [*await self._look(obj, pod, runs, given.conf_hash), *found.findings]

    def requeue_after(self, obj: Accounting) -> float | None:
        """Soon while an answer of slurmdbd's container is waited for."""
        return self._soon.get(obj.metadata.key)

    async def _outside(self, obj: Accounting) -> list[Finding]:
        """Nothing is made for an outside slurmdbd, and what was made for one inside goes."""
        for kind in _KINDS:
            name = names.accounting_workload(obj)
            await self.objects.remove(obj, self.events, kind, name)
        host, port = names.accounting_host(obj), names.accounting_port(obj)
        end = await self._port_probe.probe(obj.metadata.namespace, host, port)
        found = closed(end, "slurmdbd", host, port)
        self._soon[obj.metadata.key] = SELDOM_S if found is None else AGAIN_S
        return [found or Finding(True, "External", f"slurmdbd is outside, at {host}:{port}")]

    async def _look(self, obj: Accounting, pod: Pod, runs: Finding, wanted: str) -> list[Finding]:
        """What slurmdbd says of its files and its database, asked only while there is a reason."""
        key, now_has = obj.metadata.key, (pod.metadata.uid, wanted)
        answers = Finding(True, "DatabaseAnswers", type=REACHABLE)
        if pod.ready and self._has.get(key) == now_has:
            return [runs, answers]
        said, why = await self._said(pod)
        found = [runs, answers]
        if not pod.ready:
            self._soon[key] = AGAIN_S
            answers = slurmdbd.database(said, _where(obj))
            found = [runs, answers] if runs.ok is False else [answers]
        if self._has.get(key) != now_has:
            found += await self._deliver(obj, pod, wanted, said, why)
        return found

    async def _deliver(
        self, obj: Accounting, pod: Pod, wanted: str, said: Said, why: str
    ) -> list[Finding]:
        """Have slurmdbd take over its file, and say what is not as it is declared."""
        key, uid, now = obj.metadata.key, pod.metadata.uid, self.client.clock.monotonic()
        wait = self._waits.get(key)
        if wait is None or (wait.uid, wait.wanted) != (uid, wanted):
            wait = self._waits[key] = _Wait(uid, wanted, now)
        waited = now - wait.since
        if said.effective == wanted or (waited > DEAF_S and not said.effective):
            self._has[key] = (uid, wanted)
            del self._waits[key]
            if wait.handed:
                note = f"slurmdbd of {pod.metadata.name} runs on with its changed slurmdbd.conf"
                self.events.normal(obj, "ConfigDelivered", note, "Configure")
            return []
        if said.refused == wanted:
            self._soon[key] = AGAIN_S
            told = f"slurmdbd refuses its slurmdbd.conf and keeps the one it has: {said.words}"
            return [Finding(False, "ConfigRefused", told)]
        self._soon[key] = 0.3 if waited < 4 * REFRESH_S else AGAIN_S
        if not said.effective and waited < REFRESH_S:
            # Its container has only just started: it says in a moment what it began with.
            return []
        wait.handed = True
        if (
            not await self._restarter.annotate(pod, wanted)
            and waited >= REFRESH_S * 3**wait.refreshed
        ):
            wait.refreshed += 1
            await self._restarter.refresh(pod, f"{wanted[:12]}-{wait.refreshed}")
        told = "slurmdbd has not taken over its changed slurmdbd.conf yet"
        return [Finding(None, "ConfigDelivering", f"{told}: {why}" if why else told)]

    async def _restart_on_change(self, obj: Accounting, pod: Pod, wanted: str) -> None:
        """Let a slurmdbd that ended on a bad file start at once on the next one."""
        if not await self._restarter.restart_if_crashed(obj, self.events, pod, "slurmdbd", wanted):
            await self._restarter.annotate(pod, wanted)

    async def _said(self, pod: Pod) -> tuple[Said, str]:
        try:
            meta = pod.metadata
            log = await self.client.log(meta.namespace, meta.name, "slurmdbd", LINES)
        except KubeError as error:
            return Said(), f"its log cannot be read: {error}"
        return slurmdbd.read(log), ""

    def _given(self, obj: Accounting) -> SlurmdbdInputs:
        """Everything that slurmdbd is given; asked for only when nothing is missing."""
        spec, space = obj.spec, obj.metadata.namespace
        jwt, jwks = spec.effective_jwt_key_ref, spec.jwks_key_ref
        found = self.world.jwks(space, jwks) if jwks is not None else None
        return SlurmdbdInputs(
            image=self.world.settings.images.slurmdbd,
            conf=slurmdbd_conf(obj, self._password(obj) or ""),
            jwt_key=(self.world.secret_value(space, jwt) or b"") if jwt is not None else b"",
            slurm_key_hash=self._key_hash(obj),
            jwt_key_hash=self.world.secret_hash(space, jwt) if jwt is not None else "",
            jwks_hash=digest(found) if found is not None else "",
            ring=next((names.key_ring(one) for one in self.world.rings_of(obj)), ""),
        )

    def _key_hash(self, obj: Accounting) -> str:
        """Names the slurm.key that slurmdbd is to begin with.

        A changed one reaches it by the key rings of its clusters, once each of them knows it.
        """
        every = [self.world.ring(one) for one in self.world.rings_of(obj)]
        rings = [one for one in every if one is not None]
        behind = [one for one in rings if one.phase is not Phase.CLIENTS]
        if rings:
            return (behind or rings)[0].clients
        ref = obj.spec.slurm_key_ref
        return self.world.secret_hash(obj.metadata.namespace, ref) if ref is not None else ""

    def _conf(self, obj: Accounting) -> str:
        """slurmdbd.conf as it is now; empty when there is none."""
        ref = SecretKeySelector(name=names.accounting_workload(obj), key=render.CONF)
        value = self.world.secret_value(obj.metadata.namespace, ref)
        return value.decode(errors="replace") if value is not None else ""

    def _password(self, obj: Accounting) -> str | None:
        """The password of the database; a line break at its end is none of it."""
        storage = obj.spec.storage_config
        if storage is None:
            return None
        value = self.world.secret_value(obj.metadata.namespace, storage.password_key_ref)
        return value.decode(errors="replace").rstrip("\r\n") if value is not None else None

    def _missing(self, obj: Accounting) -> list[Finding]:
        """What slurmdbd cannot start without. What runs already goes on meanwhile."""
        spec, space = obj.spec, obj.metadata.namespace
        storage = spec.storage_config
        wanted = (
            ("slurmKeyRef", spec.slurm_key_ref),
            ("jwtKeyRef", spec.effective_jwt_key_ref),
            ("storageConfig.passwordKeyRef", storage.password_key_ref if storage else None),
        )
        found = [
            self._absent(space, path, ref)
            for path, ref in wanted
            if ref is not None and self.world.secret_value(space, ref) is None
        ]
        password = self._password(obj)
        if password is not None and (wrong := password_problem(password)):
            told = f"spec.storageConfig.passwordKeyRef: the password cannot be used: {wrong}"
            found.append(Finding(False, "PasswordUnusable", told))
        jwks = spec.jwks_key_ref
        if jwks and (wrong := jwks_finding(jwks, space, self.world.jwks(space, jwks))):
            found.append(wrong)
        return found

    def _absent(self, space: str, path: str, ref: SecretKeySelector) -> Finding:
        if self.world.makes_key(space, ref.name):
            return Finding(None, "CreatingKeys", f"Secret {ref.name} is being made")
        return Finding(
            False,
            "SecretNotFound",
            f"spec.{path}: there is no Secret {ref.name} with a key {ref.key} in namespace "
            f"{space}. Create it",
        )


def _running(pod: Pod) -> bool:
    every = pod.status.container_statuses or ()
    return any(one.name == "slurmdbd" and one.state.running is not None for one in every)


def _where(obj: Accounting) -> str:
    storage = obj.spec.storage_config
    return f"{storage.database} at {storage.host}:{storage.port}" if storage is not None else ""
