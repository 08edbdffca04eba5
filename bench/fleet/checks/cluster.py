"""Objects of the SlurmCluster, and its checks."""

from __future__ import annotations

from typing import Any

from bench.fleet.cluster import CLUSTER, NODESET, SPACE, Json
from penstock.api.nebius.common import GROUP
from penstock.base import yaml_text
from penstock.local import charts
from penstock.local.recipes import ROOT

EXAMPLE = ROOT / "examples/slurmcluster-nodesets.yaml"
REST_HOST = f"{CLUSTER}-rest-svc.{SPACE}"
FAILING = "failing"
"""The check that fails on some nodes."""
_EMPTY: Json = {"emptyDir": {}}


def slurmcluster(port: int) -> list[Json]:
    """The example with one NodeSet, of no workers yet, and without PVCs: nothing makes them here.

    slurmrestd is at that port of the machine.
    """
    found: list[Json] = yaml_text.documents(EXAMPLE.read_text())
    (cluster,) = (one for one in found if one["kind"] == "SlurmCluster")
    nodeset = next(one for one in found if one["kind"] == "NodeSet")
    spec: Json = cluster["spec"]
    spec["volumeSources"] = [{"name": one["name"], **_EMPTY} for one in spec["volumeSources"]]
    spec["slurmNodes"]["rest"]["rest"] = {"image": "localhost/penstock/slurm:26.05", "port": port}
    del spec["partitionConfiguration"]
    # The simulated slurmds register without features of their own: each would be updated alone.
    nodeset["spec"] |= {"clusterName": CLUSTER, "replicas": 0, "nodeConfig": {}}
    nodeset["spec"]["slurmd"]["volumes"]["jail"] = _EMPTY
    cluster["metadata"] = {"name": CLUSTER, "namespace": SPACE}
    nodeset["metadata"] = {"name": NODESET, "namespace": SPACE}
    return [cluster, nodeset]


def checks() -> list[Json]:
    """All checks that the chart has on, with what they need, and one that fails."""
    values: dict[str, Any] = {
        "slurmClusterRefName": CLUSTER,
        "global": {"imageRegistry": "localhost/penstock"},
    }
    text = charts.rendered("soperator-activechecks", "checks", SPACE, values)
    made = charts.objects(text)
    for one in made:
        one["metadata"]["namespace"] = SPACE
    spec: Json = {
        "name": FAILING,
        "slurmClusterRefName": CLUSTER,
        "checkType": "slurmJob",
        "runAfterCreation": True,
        "suspend": True,
        "slurmJobSpec": {"sbatchScript": "#!/bin/sh\ntrue\n", "eachWorkerJobs": True},
        "failureReactions": {"drainSlurmNode": {"drainReasonPrefix": "[node_problem]"}},
    }
    failing: Json = {
        "apiVersion": f"{GROUP}/v1alpha1",
        "kind": "ActiveCheck",
        "metadata": {"name": FAILING, "namespace": SPACE},
        "spec": spec,
    }
    return [*made, failing]
