"""JailedConfig: files of ConfigMaps that are written into the jail of a cluster.

All JailedConfigs of the cluster are one key: which of them writes a file is decided among all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import structlog

from penstock.api.kubernetes.kinds import CONFIG_MAPS, ConfigMap
from penstock.api.nebius import names
from penstock.api.nebius.jailed_config import JAILED_CONFIGS, JailedConfig
from penstock.controllers.caches.store import CacheStore
from penstock.controllers.jailed_config.delivery import (
    DELIVERED,
    RECHECK_S,
    data_changed,
    fill_problem,
)
from penstock.controllers.jailed_config.jail_errors import JailError
from penstock.controllers.jailed_config.jail_worker import JailWorker
from penstock.controllers.jailed_config.metrics import FAILURES, FILES_REPLACED
from penstock.controllers.jailed_config.reconfiguration import Outcome, Reconfigurations
from penstock.controllers.jailed_config.status_writer import StatusWriter
from penstock.controllers.observed.watching import spec_changed
from penstock.decide.jail import jailed_config as decide
from penstock.decide.jail.file_assignment import Assignment, assign_files
from penstock.decide.jail.jailed_config import Member
from penstock.kube import Result
from penstock.kube.runtime.declaration import IndexBy, Lookup, Signal, Watch
from penstock.model.jail_file import Fault, JailFile
from penstock.slurm.conf.includes import FOLDER
from penstock.slurm.conf.manifest import is_listed
from penstock.translate.nebius.jailed_files import content, instance_of, jailed_files

BY_CONFIG_MAP = IndexBy(
    JAILED_CONFIGS, lambda obj: [f"{obj.metadata.namespace}/{obj.spec.config_map.name}"]
)
FILLED_POLL_S = 2.0
RETRY_S = 5.0
"""Files that could not be written are tried again after this time."""
DELIVERED_LATER = "The file is delivered with the cluster's configuration"

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)


@dataclass(slots=True)
class _Config:
    """One JailedConfig during one reconcile."""

    obj: JailedConfig
    assignment: Assignment
    member: Member
    differing: tuple[JailFile, ...] = ()

    def set(self, **changes: object) -> None:
        self.member = replace(self.member, **changes)


class JailedConfigReconciler:
    """Writes the files of the JailedConfigs of one cluster."""

    name = "jailed-config"
    resource = JAILED_CONFIGS

    def __init__(
        self,
        namespace: str,
        cluster: str,
        store: CacheStore,
        jail: JailWorker,
        status: StatusWriter,
        reconfigurations: Reconfigurations,
    ) -> None:
        self.key = f"{namespace}/{cluster}"
        self.watches = (
            Watch(JAILED_CONFIGS, self._keys, _declaration_changed),
            Watch(CONFIG_MAPS, self._keys_of_config_map, data_changed),
        )
        self.signals = (Signal(DELIVERED, lambda _, __: [self.key]),)
        self._cluster = cluster
        self._configuration = f"{namespace}/{names.slurm_configs(cluster)}"
        self._store = store
        self._jail = jail
        self._status = status
        self._reconfigurations = reconfigurations

    def _keys(self, obj: JailedConfig, _: Lookup) -> list[str]:
        return [self.key] if instance_of(obj) == self._cluster else []

    def _keys_of_config_map(self, obj: ConfigMap, lookup: Lookup) -> list[str]:
        key = obj.metadata.key
        named = any(self._keys(one, lookup) for one in lookup.by(BY_CONFIG_MAP, key))
        return [self.key] if named or key == self._configuration else []

    async def run(self, _: str) -> Result:
        """Bring all files up to their ConfigMaps. Raises KubeError."""
        found = [one for one in self._store.all(JAILED_CONFIGS) if self._is_ours(one)]
        objects = {one.metadata.name: self._status.latest(one) for one in found}
        if not objects:
            self._reconfigurations.keep_only(())
            return Result()
        if problem := await self._jail.run(fill_problem):
            for obj in objects.values():
                await self._status.write(obj, decide.not_filled(obj.status.conditions, problem))
            return Result(requeue_after=FILLED_POLL_S)
        groups: dict[str, list[_Config]] = {}
        for assignment in self._assignments(objects.values()):
            one = _Config(objects[assignment.config.name], assignment, _member(objects, assignment))
            groups.setdefault(_group(one), []).append(one)
        self._reconfigurations.keep_only(groups)
        waits = [await self._bring_about(name, group) for name, group in groups.items()]
        return Result(requeue_after=min(waits))

    def _is_ours(self, obj: JailedConfig) -> bool:
        return bool(self._keys(obj, self._store)) and not obj.metadata.deleting

    def _assignments(self, objects: Iterable[JailedConfig]) -> Sequence[Assignment]:
        configuration = self._store.get(CONFIG_MAPS, self._configuration)
        texts = content(configuration) if configuration is not None else {}
        delivered = {f"{FOLDER}/{name}": name for name in texts if is_listed(name)}
        found = assign_files(
            [
                jailed_files(
                    one,
                    self._store.get(
                        CONFIG_MAPS, f"{one.metadata.namespace}/{one.spec.config_map.name}"
                    ),
                )
                for one in objects
            ],
            names.slurm_configs(self._cluster),
            delivered,
        )
        # Content and mode of a delivered file are those of the configuration.
        return [
            replace(
                one,
                delivered=tuple(
                    JailFile(file.path, texts[delivered[file.path]]) for file in one.delivered
                ),
            )
            for one in found
        ]

    async def _bring_about(self, name: str, group: list[_Config]) -> float:
        """Write the files of a group, then reconfigure; the seconds until the next reconcile."""
        for one in group:
            await self._compare(one)
        acts = decide.has_action(one.member for one in group)
        if acts and any(one.differing for one in group):
            # The journal: whoever comes later reads that slurmctld has to be reconfigured.
            await self._begin([one for one in group if one.member.fault is None])
        for one in group:
            await self._replace(one)
        members = [one.member for one in group]
        outcome = Outcome()
        if decide.needs_reconfigure(members):
            changed = any(one.has_changed for one in members)
            if changed:
                await self._report(group, Outcome(waits="slurmctld is being reconfigured"))
            outcome = await self._reconfigurations.advance(name, changed=changed)
        await self._report(group, outcome)
        retry = any(one.fault is not None or one.waits_for for one in members)
        waits = (outcome.requeue_after, RETRY_S if retry else None, RECHECK_S)
        return min(one for one in waits if one is not None)

    async def _compare(self, one: _Config) -> None:
        if one.member.fault is not None:
            return
        assignment = one.assignment
        try:
            one.differing = await self._jail.run(lambda jail: jail.differing(assignment.files))
            late = await self._jail.run(lambda jail: jail.differing(assignment.delivered))
        except JailError as error:
            self._fail(one, error)
            return
        if late:
            one.set(waits_for=f"{DELIVERED_LATER}: {late[0].path}")

    async def _replace(self, one: _Config) -> None:
        files = one.differing
        if one.member.fault is not None or not files:
            return
        try:
            await self._jail.run(lambda jail: jail.write(files))
        except JailError as error:
            self._fail(one, error)
            return
        one.set(has_changed=True)
        FILES_REPLACED.labels("JailedConfig").inc(len(files))
        log.info("files replaced", name=one.assignment.config.name, files=[f.path for f in files])

    def _fail(self, one: _Config, error: JailError) -> None:
        one.set(fault=Fault(decide.FAILED, str(error)))
        FAILURES.labels("JailedConfig").inc()
        log.warning("files not written", name=one.assignment.config.name, problem=str(error))

    async def _begin(self, group: list[_Config]) -> None:
        for one in group:
            one.obj = await self._status.write(one.obj, decide.refreshing())
            one.set(conditions=one.obj.status.conditions)

    async def _report(self, group: list[_Config], outcome: Outcome) -> None:
        acts = decide.has_action(one.member for one in group)
        for one in group:
            findings = decide.findings(
                one.member, acts=acts, failure=outcome.failure, waits=outcome.waits
            )
            one.obj = await self._status.write(one.obj, findings)


def _member(objects: dict[str, JailedConfig], assignment: Assignment) -> Member:
    config = assignment.config
    return Member(
        conditions=objects[config.name].status.conditions,
        reconfigures=config.reconfigures,
        is_grouped=config.group is not None,
        fault=config.fault,
    )


def _group(one: _Config) -> str:
    """Names of objects and values of labels have no colon."""
    config = one.assignment.config
    alone = config.group is None
    return f"name:{config.name}" if alone else f"group:{config.group}"


def _declaration_changed(old: JailedConfig | None, new: JailedConfig | None) -> bool:
    """Whether a JailedConfig was created, deleted or changed, its status left out."""
    if old is None or new is None:
        return True
    return spec_changed(old, new) or old.metadata.labels != new.metadata.labels
