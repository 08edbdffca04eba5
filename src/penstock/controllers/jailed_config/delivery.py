"""Puts the configuration of the cluster into its jail: the files of one ConfigMap.

The reconfigure container of slurmctld applies them, and the operator decides what the ConfigMap
has. Here is only the way of the files.
"""

from __future__ import annotations

from collections.abc import Mapping

import structlog

from penstock.api.kubernetes.kinds import CONFIG_MAPS, ConfigMap
from penstock.api.nebius import names
from penstock.catalog.event import Event
from penstock.controllers.caches.store import CacheStore
from penstock.controllers.jailed_config.jail_errors import JailError
from penstock.controllers.jailed_config.jail_files import JailFiles
from penstock.controllers.jailed_config.jail_worker import JailWorker
from penstock.controllers.jailed_config.metrics import FAILURES, FILES_REPLACED
from penstock.decide.jail.configuration import (
    LARGEST_MANIFEST,
    MANIFEST_PATH,
    delivery,
)
from penstock.kube import Recorder, Result
from penstock.kube.client.backoff import Backoff
from penstock.kube.runtime.declaration import Lookup, Signal, Signals, Watch
from penstock.slurm.conf.includes import SLURM_CONF
from penstock.translate.nebius.jailed_files import content

DELIVERED = "configuration delivered"
"""Signal with the key of the ConfigMap: files of the jail changed."""
FILLED_POLL_S = 0.5
RECHECK_S = 60.0
"""Files that somebody changed in the jail are replaced within this time."""

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)


class DeliveryReconciler:
    """Keeps /etc/slurm of the jail equal to the ConfigMap of the cluster's configuration."""

    name = "configuration"
    resource = CONFIG_MAPS
    signals: tuple[Signal, ...] = ()

    def __init__(
        self,
        namespace: str,
        cluster: str,
        store: CacheStore,
        jail: JailWorker,
        recorder: Recorder,
        signals: Signals,
    ) -> None:
        self.key = f"{namespace}/{names.slurm_configs(cluster)}"
        self.watches = (Watch(CONFIG_MAPS, self._keys, data_changed),)
        self.problem: str | None = None
        """Why the jail has not the configuration; None once it has, or while there is none."""
        self._cache = store.of(CONFIG_MAPS)
        self._jail = jail
        self._recorder = recorder
        self._emit = signals.emit
        self._backoff = Backoff(1.0, 30.0)
        self._failed = 0

    def _keys(self, obj: ConfigMap, _: Lookup) -> list[str]:
        return [self.key] if obj.metadata.key == self.key else []

    async def run(self, key: str) -> Result:
        """Deliver what the ConfigMap has now. Raises NotLeaderError."""
        found = self._cache.get(key)
        if found is None:
            self.problem = None
            return Result()
        if problem := await self._jail.run(fill_problem):
            self.problem = problem
            return Result(requeue_after=FILLED_POLL_S)
        files = content(found)
        if SLURM_CONF not in files:
            name = found.metadata.name
            return self._report(
                found, f"ConfigMap {name} has no {SLURM_CONF}; the jail keeps its files"
            )
        try:
            replaced = await self._jail.run(lambda jail: deliver(jail, files))
        except JailError as error:
            return self._report(found, f"The configuration is not delivered: {error}")
        self.problem, self._failed = None, 0
        if replaced:
            log.info("configuration delivered", files=replaced)
            FILES_REPLACED.labels("ConfigMap").inc(replaced)
            self._emit(DELIVERED, key)
        return Result(requeue_after=RECHECK_S)

    def _report(self, config_map: ConfigMap, words: str) -> Result:
        if self.problem != words:
            log.warning("configuration not delivered", problem=words)
        self.problem = words
        self._failed += 1
        FAILURES.labels("ConfigMap").inc()
        self._recorder.event(
            CONFIG_MAPS, config_map, reason=Event.NOT_DELIVERED, note=words, warning=True
        )
        return Result(requeue_after=self._backoff.delay(self._failed))


def fill_problem(jail: JailFiles) -> str:
    """Why nothing may be written yet; empty once the Job that fills the jail has completed."""
    try:
        if jail.existing((names.JAIL_MARKER,)):
            return ""
    except JailError as error:
        return f"The jail cannot be read: {error}"
    return f"The jail is not filled yet: it has no {names.JAIL_MARKER}"


def deliver(jail: JailFiles, files: Mapping[str, bytes]) -> int:
    """Make the jail have these files; the number of those that were replaced or removed.

    Raises JailError; files before the one that failed may have been replaced then.
    """
    last = jail.read(MANIFEST_PATH, LARGEST_MANIFEST) or b""
    wanted = delivery(files, last.decode(errors="replace"))
    differing = jail.differing(wanted.files)
    if not differing and not jail.differing((wanted.manifest,)):
        return 0
    gone = jail.existing(wanted.removed)
    jail.write(differing, first=wanted.announcement, removed=gone, last=wanted.manifest)
    return len(differing) + len(gone) + 1


def data_changed(old: ConfigMap | None, new: ConfigMap | None) -> bool:
    """Whether a ConfigMap was created, deleted, or has other files."""
    if old is None or new is None:
        return True
    return (
        old.data != new.data
        or old.binary_data != new.binary_data
        or old.metadata.uid != new.metadata.uid
    )
