"""What Kubernetes' own controllers do while a cluster of soperator is taken over.

D80. The garbage collector and the StatefulSet controller are real; OpenKruise's is absent. Pods
wait for a Kubernetes node, as no image of soperator is there.
"""

from __future__ import annotations

import os
from collections.abc import Generator

import pytest

from penstock.api.kubernetes.kinds import PODS, STATEFUL_SETS
from penstock.controllers.runtime.apis import NEBIUS
from penstock.controllers.runtime.settings import Settings
from penstock.local.components import Size
from penstock.local.node import Node
from support.soperator_site import left_by

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def node() -> Generator[Node]:
    """One of its own: no operator runs there, which would take the objects over at once."""
    with Node(f"test-left-{os.getpid()}") as made:
        yield made.up(Size.NODE)


@pytest.mark.parametrize("version", ["1.23", "5.0"])
async def test_real_controllers_orphan_and_adopt_the_pods_and_replace_none(
    node: Node, version: str
) -> None:
    async with left_by(node, version, real=True) as found:

        async def adopted() -> bool:
            """Whether the StatefulSet controller reports the pods that it has adopted."""
            return all(
                one.get("status", {}).get("replicas") == one["spec"]["replicas"]
                for one in await found.all(STATEFUL_SETS)
            )

        async with found.lab.operator(settings=Settings(apis=(NEBIUS,))):
            await found.until_taken_over(real=True)
            await found.until(adopted)
            await found.lab.calm(3)
        assert found.pods.items() <= (await found.uids()).items()
        owners = {
            one["metadata"]["name"]: {o["kind"] for o in one["metadata"].get("ownerReferences", ())}
            for one in await found.all(PODS)
        }
        ours = {"1.23": "SlurmCluster", "5.0": "NodeSet"}[version]
        for name in found.pods:
            if name.startswith("worker-"):
                assert owners[name] == {ours}
            elif name.rpartition("-")[0].endswith(("controller", "login")):
                assert owners[name] == {"StatefulSet"}
