"""A cluster that the real soperator left is taken over before a real API server.

D80, D81. There is no controller: the test does what the garbage collector and the StatefulSet
controller do.
"""

from __future__ import annotations

import pytest

from penstock.api.cluster import marks
from penstock.api.kubernetes.kinds import DEPLOYMENTS, JOBS, PODS, SECRETS, SERVICES, STATEFUL_SETS
from penstock.api.nebius.advanced_stateful_set import ADVANCED_STATEFUL_SETS
from penstock.controllers.runtime.apis import NEBIUS
from penstock.controllers.runtime.settings import Settings
from penstock.local.node import Node
from support.soperator_left import MANAGER, WORKERS
from support.soperator_site import left_by, managers

pytestmark = [pytest.mark.api, pytest.mark.timeout(900)]


@pytest.mark.parametrize("version", ["1.23", "5.0"])
async def test_a_real_api_server_lets_all_of_it_be_taken_over_without_a_restart(
    api_node: Node, version: str
) -> None:
    async with left_by(api_node, version) as found:
        lab_, settings = found.lab, Settings(apis=(NEBIUS,))
        theirs = {
            one["metadata"]["name"]: one["spec"]["template"]
            for one in [*await found.all(ADVANCED_STATEFUL_SETS), *await found.all(DEPLOYMENTS)]
        }
        addresses = {
            one["metadata"]["name"]: one["spec"].get("clusterIP")
            for one in await found.all(SERVICES)
        }
        async with lab_.operator(settings=settings) as running:
            await found.until_taken_over()
            await lab_.calm(3)
            assert not [
                one for one in running.writes if one.startswith("DELETE") and "/pods/" in one
            ]
        # Workers on demand run as well: an ephemeral NodeSet gets all its replicas.
        assert found.pods.items() <= (await found.uids()).items()
        secrets = {one["metadata"]["name"]: one["data"] for one in await found.all(SECRETS)}
        assert {name: secrets[name] for name in found.secrets} == found.secrets
        jobs = [one["metadata"]["name"] for one in await found.all(JOBS)]
        assert jobs == [f"{found.left.name}-populate-jail"]
        for one in [*await found.all(STATEFUL_SETS), *await found.all(DEPLOYMENTS)]:
            name, spec = one["metadata"]["name"], one["spec"]["template"]["spec"]
            had = theirs[name]["spec"]
            assert [c["image"] for c in spec["containers"]] == [
                c["image"] for c in had["containers"]
            ]
            if marks.ADOPTED_TEMPLATE in one["metadata"].get("annotations", {}):
                assert "penstock" in managers(one)
        sets = {one["metadata"]["name"] for one in await found.all(STATEFUL_SETS)}
        assert sets == theirs.keys() - set(WORKERS[version]) - {
            one["metadata"]["name"] for one in await found.all(DEPLOYMENTS)
        }
        for one in await found.all(SERVICES):
            name = one["metadata"]["name"]
            if not name.endswith("-exporter-svc"):  # soperator has none
                assert one["spec"].get("clusterIP") == addresses[name]
            if "penstock" in managers(one):
                assert MANAGER not in managers(one)
        for pod in await found.all(PODS):
            name = pod["metadata"]["name"]
            if name.startswith("worker") and name in found.pods:
                revision = pod["metadata"]["annotations"][marks.ADOPTED_REVISION]
                assert revision.startswith(pod["metadata"]["name"].rpartition("-")[0])
        # Another process knows nothing but what is written.
        async with lab_.operator(settings=settings) as running:
            await lab_.calm(5)
            # The status follows what Slurm answers, and the simulated one lists no nodes here.
            others = ("/events", "/status")
            assert [one for one in running.writes if not any(x in one for x in others)] == []
        assert found.pods.items() <= (await found.uids()).items()
