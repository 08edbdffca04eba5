"""What the caches say of who belongs to whom."""

from __future__ import annotations

import msgspec

from penstock.api.meta import OwnerReference
from support import nodesets
from unit.controllers.stage import put, world_of
from unit.kube.fake_api import FakeApi


def test_namesakes_are_pods_of_a_nodeset_s_form_that_it_does_not_control():
    world, wanted = world_of(FakeApi()), nodesets.nodeset()
    own, odd = nodesets.pod(0), nodesets.pod(name="compute-extra")
    former = OwnerReference(kind="NodeSet", name="compute", uid="former", controller=True)
    others = [nodesets.pod(7), nodesets.pod(8), nodesets.pod(name="other-1")]
    others = [
        msgspec.structs.replace(
            pod, metadata=msgspec.structs.replace(pod.metadata, owner_references=owners)
        )
        for pod, owners in zip(others, ((), (former,), ()), strict=True)
    ]
    put(world.pods, own, odd, others[2])
    assert world.namesakes(wanted) == ()
    put(world.pods, *others)
    assert [pod.metadata.name for pod in world.namesakes(wanted)] == ["compute-7", "compute-8"]
