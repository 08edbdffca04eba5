"""Replacement of Kubernetes nodes before a real API server."""

from __future__ import annotations

import pytest

from api.test_node_outages import OneNode, allowed, until
from penstock.api.cluster.marks import REPLACEMENTS
from penstock.api.kubernetes.kinds import NODES
from penstock.api.kubernetes.meta import Json
from penstock.api.nebius.slurmcluster import SLURM_CLUSTERS
from penstock.controllers.nebius.machine_provider import KubernetesProvider
from penstock.decide.node_replacement import Replacement, write_records
from penstock.kube import ConflictError, NotFoundError
from penstock.model.node_mark import Purpose
from support.nebius import manifest
from support.operator_kit import Lab, Node, lab

pytestmark = pytest.mark.api


async def record(lab_: Lab, name: str, *records: Replacement) -> None:
    """What the operator writes before each step."""
    annotations: Json = {REPLACEMENTS: write_records(records) if records else None}
    body: Json = {"metadata": {"annotations": annotations}}
    await lab_.client.patch(SLURM_CLUSTERS, lab_.namespace, name, body)


async def test_a_node_of_an_open_record_is_out_and_only_the_recorded_one_is_deleted(
    api_node: Node,
) -> None:
    """S174: with the rights of the chart, and by the uid of the node."""
    async with lab(api_node) as lab_, lab_.operator(), allowed(lab_):
        machine = OneNode(lab_)
        async with machine.there():
            found = await machine.get()
            made = manifest("slurmcluster-5.0-0")
            meta = {"name": "slurm", "namespace": lab_.namespace}
            # Objects of a test stay in the API server, which other tests use: so does a node port.
            made["spec"]["slurmNodes"]["login"]["sshdServiceType"] = "LoadBalancer"
            await lab_.user.apply(SLURM_CLUSTERS, {**made, "metadata": meta})
            one = Replacement(machine.name, found.metadata.uid, "m1", "2026-01-01T00:00:00Z")
            await record(lab_, "slurm", one)

            async def is_out() -> bool:
                mark = await machine.mark()
                return mark is not None and mark.purpose is Purpose.REPLACE

            await until(is_out)
            assert (await machine.get()).spec.unschedulable
            await record(lab_, "slurm")

            async def is_back() -> bool:
                return await machine.mark() is None

            await until(is_back)
            assert not (await machine.get()).spec.unschedulable
            await record(lab_, "slurm", one)
            await until(is_out)
            provider, out = KubernetesProvider(lab_.client), await machine.get()
            await provider.replace(out)
            with pytest.raises(NotFoundError):
                await lab_.client.get(NODES, "", machine.name)
            body: Json = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": machine.name}}
            await lab_.client.create(NODES, body)
            with pytest.raises(ConflictError):
                await provider.replace(out)
            assert not (await machine.get()).metadata.deleting
