"""What our own writes have left, until the watch shows it."""

from __future__ import annotations

from penstock.api.kubernetes.kinds import ConfigMap
from penstock.api.kubernetes.meta import ObjectMeta
from penstock.kube.cache.own_writes import OwnWrites

KEY = "slurm/files"


def config_map(version: int, uid: str = "u") -> ConfigMap:
    meta = ObjectMeta(namespace="slurm", name="files", uid=uid, resource_version=str(version))
    return ConfigMap(metadata=meta)


def test_our_own_write_counts_until_the_watch_shows_it_or_something_later() -> None:
    writes = OwnWrites[ConfigMap]()
    before, ours, later = config_map(9), config_map(10), config_map(11)
    assert writes.latest(KEY, before) is before
    writes.wrote(ours)
    assert writes.latest(KEY, before) is ours
    assert writes.latest(KEY, later) is later
    assert writes.latest(KEY, before) is before


def test_what_is_gone_or_was_made_again_does_not_come_back_by_our_write() -> None:
    writes = OwnWrites[ConfigMap]()
    again = config_map(5, uid="v")
    for seen in (None, again):
        writes.wrote(config_map(10))
        assert writes.latest(KEY, seen) is seen
