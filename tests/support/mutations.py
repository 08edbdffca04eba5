"""The operator with one guard switched off: what the plans must notice."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, cast

import pytest

from penstock.api.cluster.marks import CONFIG_HASH
from penstock.api.kubernetes.kinds import NODES, PODS, Pod
from penstock.api.kubernetes.meta import Json
from penstock.api.kubernetes.resource import Resource
from penstock.api.slinky.accounting import Accounting
from penstock.api.slinky.labels import REVISION_HASH, SLURMDBD_CONF_HASH
from penstock.api.slinky.nodeset import NodeSet
from penstock.controllers.config import transaction as config
from penstock.controllers.config.transaction import ConfigTransaction
from penstock.controllers.nodeset import actor as act
from penstock.controllers.observed.references import accountings_using_secret, tokens_using_secret
from penstock.controllers.partition.verification import PartitionVerifier
from penstock.controllers.runtime import reconciler as loop
from penstock.controllers.runtime import slurm_connections as links
from penstock.controllers.slinky.accounting import AccountingReconciler
from penstock.controllers.slinky.nodeset import NodeSetReconciler
from penstock.controllers.slinky.token import TokenReconciler
from penstock.controllers.slurm_node import actor as act_slurm
from penstock.decide.action import DeletionGround, DrainNode
from penstock.decide.auth import key_rotation as key_ring
from penstock.decide.config.reconfigure_log import Acknowledgements
from penstock.decide.config.start import StartResult
from penstock.decide.config.view import ConfigStep, ConfigView
from penstock.decide.drain import deletion_guard as guard
from penstock.decide.drain import resume
from penstock.decide.drain.deletion_guard import DeletionVerdict
from penstock.decide.nodeset import plan, worker_steps
from penstock.decide.nodeset import pod_roles as roles
from penstock.decide.nodeset import pvc as claims
from penstock.decide.observed import drain_reason, workers
from penstock.decide.observed.deletion import Deletion
from penstock.decide.observed.slurm_view import SlurmSnapshot
from penstock.decide.observed.view import WorkerSetView
from penstock.decide.observed.worker import Worker, WorkerContext
from penstock.decide.observed.workers import ObservedWorkers
from penstock.decide.rollout import maintenance, rolling_update
from penstock.decide.rollout import recreation as remake
from penstock.decide.rollout import revision_history as history
from penstock.decide.slurm_node import parameters as live_conf
from penstock.decide.slurm_node import records
from penstock.decide.slurm_node.registration import Registration
from penstock.kube import Applied, Applier, Client, Lease, Result
from penstock.kube.cache.reflector import Reflector
from penstock.kube.client import retry as rest
from penstock.kube.runtime.queue import WorkQueue
from penstock.model.worker_marks import WorkerMarks
from penstock.model.worker_names import WorkerNames
from penstock.render.slinky.accounting import slurmdbd as accounting
from penstock.render.slinky.accounting.slurmdbd import SlurmdbdInputs
from penstock.render.slinky.cluster import adopted_workload as held
from penstock.slurm.mirror.nodes_and_jobs import Mirror
from penstock.slurm.mirror.snapshot import Snapshot
from penstock.slurm.state import Node

Mutation = Callable[[pytest.MonkeyPatch], None]
real = guard.can_delete


def always(value: Any) -> Callable[..., Any]:
    """A function that gives this, whatever it is asked."""

    def give(*_: object, **__: object) -> Any:
        return value

    return give


def _ignore(patch: pytest.MonkeyPatch, reconciler: Any, keys: object) -> None:
    """Take the watch with this key function from a reconciler."""
    left = tuple(one for one in reconciler.watches if one.keys is not keys)
    assert len(left) == len(reconciler.watches) - 1
    patch.setattr(reconciler, "watches", left)


def _judge(patch: pytest.MonkeyPatch, blind_to: frozenset[str]) -> None:
    def judge(pod: Pod, slurm: SlurmSnapshot, **how: bool) -> DeletionVerdict:
        verdict = real(pod, slurm, **how)
        if verdict.why.reason in blind_to:
            return DeletionVerdict(DeletionGround.DRAINED, verdict.why)
        return verdict

    for module in (act, worker_steps, remake):
        patch.setattr(module, "can_delete", judge)


def forgotten_workers_are_left(patch: pytest.MonkeyPatch) -> None:
    """Whether Slurm has a worker's node is nobody's business."""
    patch.setattr(plan, "registration", always(Registration()))


def unknown_counts_as_drained(patch: pytest.MonkeyPatch) -> None:
    """Silence of Slurm is taken for consent."""
    _judge(patch, frozenset({"SlurmUnknown"}))


def jobs_are_ignored(patch: pytest.MonkeyPatch) -> None:
    """Only the node's state counts, which is IDLE under a suspended job."""
    _judge(patch, frozenset({"JobsRunning"}))


def drain_is_not_waited_for(patch: pytest.MonkeyPatch) -> None:
    """An idle node counts as a drained one."""
    _judge(patch, frozenset({"NotDrained"}))


def deletes_name_no_uid(patch: pytest.MonkeyPatch) -> None:
    """Whatever pod has the name now is deleted, in whatever state."""
    delete = Client.delete

    async def bare(self: Client, *args: Any, **kwargs: Any) -> None:
        await delete(self, *args, **{**kwargs, "uid": None, "resource_version": None})

    patch.setattr(Client, "delete", bare)


def slurm_is_not_asked_again(patch: pytest.MonkeyPatch) -> None:
    """The last answer, however old, serves as a fresh one."""

    async def last(self: Mirror) -> Snapshot:
        return self.snapshot

    patch.setattr(Mirror, "poll", last)


def every_drain_is_ours(patch: pytest.MonkeyPatch) -> None:
    """Drains of others are undone and reworded."""

    def ours(*_: object) -> bool:
        return True

    patch.setattr(drain_reason, "is_own_reason", ours)


def edits_are_left(patch: pytest.MonkeyPatch) -> None:
    """Every object counts as equal to its manifest."""
    ensure = Applier.ensure

    async def once(
        self: Applier, resource: Resource[Any], manifest: Json, live: Json | None, **options: Any
    ) -> Applied:
        if live is not None:
            return Applied("unchanged", live)
        return await ensure(self, resource, manifest, live, **options)

    patch.setattr(Applier, "ensure", once)


def budget_is_dropped(patch: pytest.MonkeyPatch) -> None:
    """An update takes all pods at once."""

    def all_of_them(_: NodeSet, __: int) -> int:
        return 99

    patch.setattr(rolling_update, "max_unavailable", all_of_them)


def gone_pods_are_not_counted(patch: pytest.MonkeyPatch) -> None:
    """An update goes on while a pod is terminating or not recreated."""

    def none(*_: object) -> int:
        return 0

    patch.setattr(rolling_update, "absent", none)


def deletes_name_no_version(patch: pytest.MonkeyPatch) -> None:
    """A delete that arrives late finds a pod that was changed since."""
    delete = Client.delete

    async def bare(self: Client, *args: Any, **kwargs: Any) -> None:
        await delete(self, *args, **{**kwargs, "resource_version": None})

    patch.setattr(Client, "delete", bare)


def nothing_is_checked_again(patch: pytest.MonkeyPatch) -> None:
    """A decision is sent to Slurm, whatever changed there since."""
    patch.setattr(act_slurm, "is_still_valid", always(True))

    def as_decided(_: WorkerMarks, __: Node, action: DrainNode) -> str:
        return action.reason

    patch.setattr(act_slurm, "reason_to_send", as_decided)


def drains_are_not_remembered(patch: pytest.MonkeyPatch) -> None:
    """Somebody's drain is lost when its pod is replaced."""
    patch.setattr(records, "_remembered", always(None))


def records_are_left(patch: pytest.MonkeyPatch) -> None:
    """Nodes of pods that are gone stay in Slurm."""
    patch.setattr(plan, "orphaned_records", always(records.OrphanedRecords()))


def nodesets_have_no_finalizer(patch: pytest.MonkeyPatch) -> None:
    """A deleted NodeSet is gone at once, and its pods with it."""
    patch.setattr(plan, "finalizer_action", always(None))


def nodes_stay_down(patch: pytest.MonkeyPatch) -> None:
    """A node that its pod's end set DOWN is not resumed."""
    patch.setattr(resume, "resume_action", always(None))


def one_worker_less(patch: pytest.MonkeyPatch) -> None:
    """One pod more than asked for is taken away."""
    replicas = ObservedWorkers.replicas

    def less(self: ObservedWorkers) -> int:
        return max(0, replicas.__get__(self) - 1)

    patch.setattr(ObservedWorkers, "replicas", property(less))


def the_lease_is_not_heeded(patch: pytest.MonkeyPatch) -> None:
    """Who has lost the Lease goes on."""
    patch.setattr(Lease, "_left", always(10.0))


def slurm_does_not_heed_the_lease(patch: pytest.MonkeyPatch) -> None:
    """Who has lost the Lease goes on to write to Slurm."""
    patch.setattr(links.SlurmConnections, "_fence", always(None))


def failures_are_final(patch: pytest.MonkeyPatch) -> None:
    """What has failed is not tried again."""
    patch.setattr(WorkQueue, "retry", always(0.0))
    patch.setattr(rest, "_again", always(False))


def watches_end(patch: pytest.MonkeyPatch) -> None:
    """A watch that broke is not begun again."""
    session = cast("Any", Reflector)._session

    async def once(self: Reflector[Any]) -> Any:
        await session(self)
        await asyncio.get_running_loop().create_future()

    patch.setattr(Reflector, "_session", once)


def settled_objects_are_written(patch: pytest.MonkeyPatch) -> None:
    """Each object is written now and then, whether it needs it or not."""
    reconcile = cast("Any", loop.Reconciler).reconcile

    async def each(self: loop.Reconciler[Any], key: str) -> Result:
        await reconcile(self, key)
        if (obj := self._cache.get(key)) is not None:
            meta = obj.metadata
            body = {"metadata": {"uid": meta.uid}}
            await self.client.patch(self.resource, meta.namespace, meta.name, body)
        return Result(requeue_after=20.0)

    patch.setattr(loop.Reconciler, "reconcile", each)


def configuration_is_not_delivered(patch: pytest.MonkeyPatch) -> None:
    """The pod of slurmctld never gets a changed configuration."""

    async def never(*_: Any) -> None:
        return None

    patch.setattr(ConfigTransaction, "mark", never)


def configuration_restarts_slurmctld(patch: pytest.MonkeyPatch) -> None:
    """A changed configuration costs a restart."""
    mark = ConfigTransaction.mark

    async def restart(self: ConfigTransaction, *given: Any) -> None:
        source, events, view, decision = given
        handed = decision.marks.get(CONFIG_HASH)
        for pod in source.slurmctld_pods():
            had = pod.metadata.annotations.get(CONFIG_HASH)
            if had is not None and had != handed and not pod.metadata.deleting:
                meta = pod.metadata
                await self._client.delete(PODS, meta.namespace, meta.name, uid=meta.uid)
                return
        await mark(self, source, events, view, decision)

    patch.setattr(ConfigTransaction, "mark", restart)


def rejected_configuration_is_delivered(patch: pytest.MonkeyPatch) -> None:
    """A configuration that a trial start rejects is delivered to slurmctld."""
    read = config.read

    def all_well(log: str) -> Acknowledgements:
        found = read(log)
        return replace(found, tried=dict.fromkeys(found.tried))

    patch.setattr(config, "read", all_well)


def rejected_configuration_is_not_put_back(patch: pytest.MonkeyPatch) -> None:
    """Nothing is tried, and a configuration that slurmctld rejects stays in effect."""
    look = config.next_step

    def straight(view: ConfigView) -> ConfigStep:
        return look(replace(view, has_own_sidecar=False))

    patch.setattr(config, "next_step", straight)


def restarts_are_not_judged(patch: pytest.MonkeyPatch) -> None:
    """A slurmctld that does not come up keeps its files."""
    patch.setattr(config, "observe", always(StartResult()))


def files_that_are_read_count_as_served_with(patch: pytest.MonkeyPatch) -> None:
    """What slurmctld is about to start with becomes the last known good configuration."""
    look = config.next_step

    def hasty(view: ConfigView) -> ConfigStep:
        return look(replace(view, is_ready=True))

    patch.setattr(config, "next_step", hasty)


def trials_without_a_verdict_are_taken(patch: pytest.MonkeyPatch) -> None:
    """A trial start without a verdict counts as a yes."""
    read = config.read

    def all_well(log: str) -> Acknowledgements:
        found = read(log)
        return replace(found, tried={**found.tried, **dict.fromkeys(found.untried)})

    patch.setattr(config, "read", all_well)


def unheard_files_go_untried(patch: pytest.MonkeyPatch) -> None:
    """Where the log cannot be read, slurmctld gets the declared configuration."""
    look = config.next_step

    def straight(view: ConfigView) -> ConfigStep:
        return look(replace(view, has_own_sidecar="cannot be read" not in view.why))

    patch.setattr(config, "next_step", straight)


def tokens_are_not_renewed(patch: pytest.MonkeyPatch) -> None:
    """A token that was minted by a wrong clock is kept."""
    first = links.Tokens.__call__

    def kept(self: links.Tokens) -> str:
        return self._token or first(self)

    patch.setattr(links.Tokens, "__call__", kept)


def partitions_are_not_proven(patch: pytest.MonkeyPatch) -> None:
    """A partition counts as changed by its request, whatever slurmctld has read since."""
    patch.setattr(PartitionVerifier, "expect", always(None))


def returning_kubernetes_nodes_are_missed(patch: pytest.MonkeyPatch) -> None:
    """A Kubernetes node that fits again gets no worker."""
    watches = NodeSetReconciler.watches
    patch.setattr(
        NodeSetReconciler,
        "watches",
        tuple(
            replace(one, changed=always(False)) if one.resource is NODES else one for one in watches
        ),
    )


def renamed_kubernetes_nodes_keep_their_slurm_node(patch: pytest.MonkeyPatch) -> None:
    """A Slurm node keeps the name that its Kubernetes node had when its pod was created."""
    context = workers.WorkerContext

    def as_made(**given: Any) -> WorkerContext:
        return replace(context(**given), slurm_nodes=None)

    patch.setattr(workers, "WorkerContext", as_made)


def workers_go_that_cannot_come_back(patch: pytest.MonkeyPatch) -> None:
    """An update takes a worker whose Kubernetes node takes no new one."""
    patch.setattr(ObservedWorkers, "is_last_on_node", always(False))


def reservations_are_not_waited_for(patch: pytest.MonkeyPatch) -> None:
    """A scheduled update takes workers before its window."""

    def at_once(_: object, old: Sequence[Worker]) -> frozenset[Worker]:
        return frozenset(old)

    patch.setattr(maintenance, "replaceable_now", at_once)


def pvcs_go_with_any_pod(patch: pytest.MonkeyPatch) -> None:
    """Each pod takes its PVC along, as scale-in does."""
    owners = claims.owners

    def of_pods(*args: Any, scaled_in: bool) -> Any:
        return owners(*args, scaled_in=True)

    patch.setattr(claims, "owners", of_pods)


def pins_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    """A pod is created for any Kubernetes node, whatever the status has."""
    slot = roles._slot  # pyright: ignore[reportPrivateUsage]

    def anywhere(names: WorkerNames, number: int, _: object) -> Any:
        return slot(names, number, {})

    patch.setattr(roles, "_slot", anywhere)


def pods_of_the_other_mode_stay(patch: pytest.MonkeyPatch) -> None:
    """Only the template decides which pods are old."""
    to_replace = rolling_update.to_replace

    def by_template(view: WorkerSetView, *given: Any) -> list[Worker]:
        found = to_replace(view, *given)
        return [
            one
            for one in found
            if one.pod.metadata.labels.get(REVISION_HASH) != view.revisions.wanted
        ]

    patch.setattr(rolling_update, "to_replace", by_template)


def changed_passwords_are_missed(patch: pytest.MonkeyPatch) -> None:
    """A changed password is found when something else has the Accounting looked at."""
    _ignore(patch, AccountingReconciler, accountings_using_secret)


def slurmdbd_restarts_for_its_file(patch: pytest.MonkeyPatch) -> None:
    """A changed slurmdbd.conf costs a restart."""
    objects = accounting.objects

    def with_hash(obj: Accounting, given: SlurmdbdInputs) -> list[Json]:
        found = objects(obj, given)
        for one in found:
            if one["kind"] == "StatefulSet":
                notes: Json = one["spec"]["template"]["metadata"]["annotations"]
                notes[SLURMDBD_CONF_HASH] = given.conf_hash
        return found

    patch.setattr(accounting, "objects", with_hash)


def tokens_outlive_their_key(patch: pytest.MonkeyPatch) -> None:
    """A Token is not looked at when its key changes."""
    _ignore(patch, TokenReconciler, tokens_using_secret)


def tokens_of_users_end(patch: pytest.MonkeyPatch) -> None:
    """A Token is not requeued by itself."""
    patch.setattr(TokenReconciler, "requeue_after", always(None))


def new_keys_are_good_at_once(patch: pytest.MonkeyPatch) -> None:
    """slurmctld signs with a new key that workers do not know yet."""

    def at_once(ring: key_ring.Ring, seen: key_ring.RotationView) -> key_ring.Step:
        return key_ring.Step(replace(ring, current=seen.key, used=True))

    patch.setattr(key_ring, "_begin", at_once)


def adopted_workloads_are_recreated(patch: pytest.MonkeyPatch) -> None:
    """StatefulSets and Deployments of another operator get our template at once."""
    patch.setattr(held, "satisfies", always(False))


def workers_of_another_operator_are_old(patch: pytest.MonkeyPatch) -> None:
    """Two revisions never mean the same pods."""

    def none(*_: object) -> dict[str, str]:
        return {}

    patch.setattr(live_conf, "equal_revisions", none)
    patch.setattr(history, "_last_revision", always(()))


def external_slurmctlds_end_with_their_controller(patch: pytest.MonkeyPatch) -> None:
    """Nothing is asked any more once the Controller goes, though slurmctld is external."""
    patch.setattr(Deletion, "is_orphaned", property(lambda one: one.is_with_cluster))


MUTATIONS: tuple[Mutation, ...] = (
    forgotten_workers_are_left,
    unknown_counts_as_drained,
    jobs_are_ignored,
    drain_is_not_waited_for,
    deletes_name_no_uid,
    deletes_name_no_version,
    slurm_is_not_asked_again,
    nothing_is_checked_again,
    every_drain_is_ours,
    drains_are_not_remembered,
    records_are_left,
    nodesets_have_no_finalizer,
    nodes_stay_down,
    one_worker_less,
    the_lease_is_not_heeded,
    slurm_does_not_heed_the_lease,
    failures_are_final,
    watches_end,
    edits_are_left,
    budget_is_dropped,
    gone_pods_are_not_counted,
    settled_objects_are_written,
    configuration_is_not_delivered,
    configuration_restarts_slurmctld,
    rejected_configuration_is_delivered,
    rejected_configuration_is_not_put_back,
    files_that_are_read_count_as_served_with,
    trials_without_a_verdict_are_taken,
    unheard_files_go_untried,
    tokens_are_not_renewed,
    partitions_are_not_proven,
    returning_kubernetes_nodes_are_missed,
    renamed_kubernetes_nodes_keep_their_slurm_node,
    workers_go_that_cannot_come_back,
    reservations_are_not_waited_for,
    pvcs_go_with_any_pod,
    pins_are_forgotten,
    pods_of_the_other_mode_stay,
    changed_passwords_are_missed,
    slurmdbd_restarts_for_its_file,
    tokens_outlive_their_key,
    tokens_of_users_end,
    new_keys_are_good_at_once,
    adopted_workloads_are_recreated,
    workers_of_another_operator_are_old,
    external_slurmctlds_end_with_their_controller,
)
