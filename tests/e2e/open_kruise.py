"""OpenKruise's own controller beside Penstock, during the switch from soperator and back.

D80. Kubernetes' controllers are real as well. Pods wait for a Kubernetes node, as no image of
soperator is there. Not part of `make test`, as the controller compiles for minutes: run it by
`make open-kruise`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Generator
from contextlib import ExitStack
from pathlib import Path

import pytest

from e2e_kit import open_kruise
from penstock.api.kubernetes.kinds import CLAIMS, PODS, STATEFUL_SETS
from penstock.api.nebius.advanced_stateful_set import ADVANCED_STATEFUL_SETS
from penstock.controllers.runtime.apis import NEBIUS
from penstock.controllers.runtime.settings import Settings
from penstock.local.components import Size
from penstock.local.node import Node
from support.soperator_left import MANAGER
from support.soperator_site import Taken, left_by

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(3600)]
SETTINGS = Settings(apis=(NEBIUS,))
KRUISE = ADVANCED_STATEFUL_SETS.api_version
OWNER = {"1.23": "SlurmCluster", "5.0": "NodeSet"}


@pytest.fixture(scope="module")
def node() -> Generator[Node]:
    """One with OpenKruise's kinds."""
    open_kruise.program()
    with Node(f"test-kruise-{os.getpid()}") as made:
        made.up(Size.NODE)
        open_kruise.install(made)
        yield made


async def owners(found: Taken) -> dict[str, list[str]]:
    """API version and kind of the owners of each pod."""
    return {
        one["metadata"]["name"]: [
            f"{o['apiVersion']} {o['kind']}" for o in one["metadata"].get("ownerReferences", ())
        ]
        for one in await found.all(PODS)
    }


async def pvcs(found: Taken) -> dict[str, tuple[str, bool]]:
    """Uid of each PVC, and whether it is being deleted."""
    return {
        one["metadata"]["name"]: (one["metadata"]["uid"], "deletionTimestamp" in one["metadata"])
        for one in await found.all(CLAIMS)
    }


async def pvc_owners(found: Taken) -> set[str]:
    """API versions of the owners of all PVCs."""
    return {
        owner["apiVersion"]
        for one in await found.all(CLAIMS)
        for owner in one["metadata"].get("ownerReferences") or ()
    }


async def of_kruise(found: Taken) -> set[str]:
    """Names of the pods that OpenKruise's StatefulSets own."""
    every = (await owners(found)).items()
    return {name for name, one in every if one == [f"{KRUISE} StatefulSet"]}


async def until_adopted(found: Taken) -> None:
    """Wait until workers are Penstock's, and Kubernetes' StatefulSets count the others' pods."""

    async def counted() -> bool:
        return all(
            one.get("status", {}).get("replicas") == one["spec"]["replicas"]
            for one in await found.all(STATEFUL_SETS)
        )

    await found.until_taken_over(real=True)
    await found.until(counted)


async def go_back(node: Node, found: Taken) -> None:
    """The commands of the page for the way back, and soperator's next reconcile."""
    space = ("-n", found.lab.namespace)
    workers = node.kubectl(*space, "get", "pods", "-l", "slurm.nebius.ai/worker=true", "-o", "name")
    for pod in workers.split():
        path = "jsonpath={.metadata.annotations.penstock\\.dev/adopted-revision}"
        revision = node.kubectl(*space, "get", pod, "-o", path)
        label = f"controller-revision-hash={revision}"
        node.kubectl(*space, "label", "--overwrite", pod, label)
        patch = json.dumps([{"op": "remove", "path": "/metadata/ownerReferences"}])
        node.kubectl(*space, "patch", pod, "--type=json", "-p", patch)
    part = ("-l", "app.kubernetes.io/part-of=slurm-operator")
    node.kubectl(*space, "delete", "statefulset", "--cascade=orphan", *part)
    for kind in ("slurmclusters", "nodesets.slurm.nebius.ai"):
        for one in node.kubectl(*space, "get", kind, "-o", "name").split():
            body = json.dumps({"metadata": {"finalizers": None}})
            node.kubectl(*space, "patch", one, "--type=merge", "-p", body)
    for one in found.left.of("StatefulSet"):
        made = found.left.fresh(one)
        for container in made["spec"]["template"]["spec"]["containers"]:
            container.get("securityContext", {}).pop("procMount", None)
        create = ("create", f"--field-manager={MANAGER}", "-f", "-")
        node.kubectl(*space, *create, stdin=json.dumps(made))


@pytest.mark.parametrize("stops", [False, True], ids=["runs-on", "stops"])
@pytest.mark.parametrize("version", ["1.23", "5.0"])
async def test_open_kruise_leaves_the_pods_and_pvcs_to_penstock_and_gets_them_back(
    node: Node, tmp_path: Path, version: str, stops: bool
) -> None:
    """Each pod and PVC that OpenKruise made is the same one after the switch and the way back."""
    with ExitStack() as kruise:
        kruise.enter_context(open_kruise.running(node, tmp_path))
        async with left_by(node, version, real=True, kruise=True) as found:
            pods, before = await found.uids(), await pvcs(found)
            made = await of_kruise(found)
            assert len(made) == sum(
                one["spec"]["replicas"] for one in await found.all(ADVANCED_STATEFUL_SETS)
            )
            # 1.23 has PVCs of workers, and whenDeleted: Delete.
            assert (KRUISE in await pvc_owners(found)) == (version == "1.23")
            if stops:
                kruise.close()
                open_kruise.remove_webhooks(node)
            async with found.lab.operator(settings=SETTINGS) as operator:
                await until_adopted(found)
                if stops:
                    kruise.enter_context(open_kruise.running(node, tmp_path))
                await found.lab.calm(5)
                assert not [
                    one for one in operator.writes if one.startswith("DELETE") and "/pods/" in one
                ]
            assert pods.items() <= (await found.uids()).items()
            assert before.items() <= (await pvcs(found)).items()
            assert KRUISE not in await pvc_owners(found)
            workers = {one for one in made if one.startswith("worker")}
            shown = await owners(found)
            assert {shown[one][0].rpartition(" ")[2] for one in workers} == {OWNER[version]}
            assert {tuple(shown[one]) for one in made - workers} == {("apps/v1 StatefulSet",)}
            await go_back(node, found)

            async def is_back() -> bool:
                return made <= await of_kruise(found) and await found.has_all_pods()

            await found.until(is_back)
            await found.lab.calm(5)
            assert {one: pods[one] for one in made}.items() <= (await found.uids()).items()
            assert before.items() <= (await pvcs(found)).items()
