"""A status is written when it differs, and only what differs."""

from __future__ import annotations

from typing import cast

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from penstock.api.kubernetes.meta import Json
from penstock.api.slinky.nodeset import NODESETS, NodeSet, NodeSetStatus
from penstock.controllers.runtime.status import merge_patch, write_status
from penstock.kube import Client
from support import nodesets
from unit.kube.fake_api import FakeApi

PATH = "/apis/slinky.slurm.net/v1beta1/namespaces/slurm/nodesets/compute"
LEAVES = (
    st.booleans() | st.integers(0, 3) | st.sampled_from(["", "a"]) | st.lists(st.integers(0, 2))
)
KEYS = st.sampled_from("abc")
VALUES = LEAVES | st.dictionaries(KEYS, LEAVES | st.dictionaries(KEYS, LEAVES))
OBJECTS = st.dictionaries(KEYS, VALUES)


def patched(old: object, patch: object) -> object:
    """RFC 7386, MergePatch(Target, Patch)."""
    if not isinstance(patch, dict):
        return patch
    result = dict(cast("Json", old)) if isinstance(old, dict) else {}
    for key, value in cast("Json", patch).items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = patched(result.get(key), value)
    return result


@given(OBJECTS, OBJECTS)
def test_a_patch_makes_the_old_be_the_new(old: Json, new: Json):
    assert patched(old, merge_patch(old, new)) == new


@given(OBJECTS, OBJECTS)
def test_only_a_difference_is_a_patch(old: Json, new: Json):
    assert (merge_patch(old, new) == {}) == (old == new)


def test_fields_that_were_found_together_are_sent_together():
    """Another write may have left another revision: the pair would be one that nobody found."""
    old = {"workers": {"revision": "b", "of": "6", "idle": 1, "gone": {"x": 1, "y": 2}}}
    new = {"workers": {"revision": "b", "of": "7", "idle": 1, "gone": {"y": 2}}}
    patch = merge_patch(old, new)
    assert patch == {"workers": {**new["workers"], "gone": {"x": None, "y": 2}}}


def of(status: NodeSetStatus) -> NodeSet:
    return msgspec.structs.replace(nodesets.nodeset(), status=status)


async def written(old: NodeSetStatus, new: NodeSetStatus) -> list[Json]:
    """The bodies that were sent."""
    api = FakeApi()
    spec: Json = {"controllerRef": {"name": "slurm"}}
    api.put(PATH + "/status", metadata={"uid": "nodeset-uid"}, spec=spec)
    await write_status(Client(api), NODESETS, of(old), new)
    return [msgspec.json.decode(one.body) for one in api.requests]


async def test_an_unchanged_status_is_not_sent():
    status = NodeSetStatus(observed_generation=3, replicas=2)
    assert await written(status, status) == []


async def test_a_change_is_sent_alone_and_to_exactly_this_object():
    old = NodeSetStatus(observed_generation=3, replicas=2, selector="a=b")
    new = msgspec.structs.replace(old, replicas=1)
    body: Json = {"metadata": {"uid": "nodeset-uid"}, "status": {"replicas": 1}}
    assert await written(old, new) == [body]


async def test_a_first_status_is_sent_whole():
    (body,) = await written(NodeSetStatus(), NodeSetStatus(observed_generation=3))
    assert body["status"]["observedGeneration"] == 3
    assert "replicas" in body["status"]


async def test_a_status_of_another_generation_is_sent_whole():
    """The server may have a hash by now that the cache does not show: a write of our own."""
    old = NodeSetStatus(observed_generation=3, node_set_hash="a", replicas=2)
    new = msgspec.structs.replace(old, observed_generation=4)
    (body,) = await written(old, new)
    assert body["status"]["nodeSetHash"] == "a"
    assert body["status"]["observedGeneration"] == 4
    assert body["status"]["replicas"] == 2


async def test_the_status_of_an_object_that_is_gone_is_nobody_s():
    api = FakeApi()
    new = NodeSetStatus(observed_generation=3)
    assert not await write_status(Client(api), NODESETS, of(NodeSetStatus()), new)
