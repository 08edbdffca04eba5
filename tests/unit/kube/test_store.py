"""Indexes over what a cache holds."""

from __future__ import annotations

from penstock.api.kubernetes.kinds import ConfigMap
from penstock.api.kubernetes.meta import ObjectMeta
from penstock.kube.cache.store import Entry, Store


def config_map(name: str, version: int, team: str = "a") -> Entry[ConfigMap]:
    meta = ObjectMeta(
        name=name,
        namespace="x",
        uid=name,
        resource_version=str(version),
        labels={"team": team},
    )
    return Entry(ConfigMap(metadata=meta))


def test_an_object_that_changes_keeps_its_place_in_an_index():
    store = Store[ConfigMap]()
    index = store.index(lambda one: [one.metadata.labels["team"]])
    for number, name in enumerate("bac"):
        store.put(config_map(name, number + 1))
    store.put(config_map("b", 9))
    assert [one.metadata.name for one in index.get("a")] == ["b", "a", "c"]
    assert index.get("a")[0].metadata.resource_version == "9"


def test_an_object_whose_value_changes_moves_from_one_to_the_other():
    store = Store[ConfigMap]()
    index = store.index(lambda one: [one.metadata.labels["team"]])
    store.put(config_map("b", 1))
    store.put(config_map("b", 2, team="z"))
    assert (index.count("a"), index.count("z")) == (0, 1)
