"""The operator of SlurmClusters in a cluster, alone or beside that of Controllers.

Where both are, each leads one API group: this one `slurm.nebius.ai`, the other `slinky.slurm.net`.
"""

import json
from typing import Any

from penstock.controllers.runtime.apis import APIS, NEBIUS, SLINKY, VARIABLE
from penstock.local import install
from penstock.local.errors import LocalError
from penstock.local.install import MANAGER, SLURMCLUSTER_DEMO, SOPERATOR
from penstock.local.target import Images, Target

MANIFEST = "deploy/soperator.yaml"
_LABEL = "penstock.dev/component=operator"
_MANAGED_BY = "app.kubernetes.io/managed-by"


def put(target: Target, images: Images) -> None:
    """Kinds and operator; returns when the operator runs.

    Raises LocalError if somebody else's operator leads the group already.
    """
    for query in (("-A", "-l", _LABEL), ("-n", SOPERATOR)):
        check(json.loads(target.kubectl("get", "deployments", *query, "-o", "json")))
    install.apply_kinds(target)
    if install.is_there(target):
        install.lead(target, (SLINKY,))
    found = install.operator(images, (NEBIUS,), MANIFEST)
    install.apply(target, found, mark=SLURMCLUSTER_DEMO)
    install.until_running(target, MANAGER, SOPERATOR)


def remove(target: Target) -> None:
    """Take out what `put` made. The operator of Controllers leads both groups again."""
    install.remove_marked(target, SLURMCLUSTER_DEMO)
    if install.is_there(target):
        install.lead(target, APIS)
    else:
        install.remove_kinds(target)


def check(deployments: Any) -> None:
    """Raise LocalError if an operator that is no demo's leads the group, or has our name."""
    for one in deployments["items"]:
        meta = one["metadata"]
        name, namespace = meta["name"], meta["namespace"]
        demos = namespace in (install.SYSTEM, SOPERATOR)
        if demos and meta.get("labels", {}).get(_MANAGED_BY) != "Helm":
            continue
        leads = any(
            variable["name"] == VARIABLE and NEBIUS in variable.get("value", "")
            for container in one["spec"]["template"]["spec"]["containers"]
            for variable in container.get("env", ())
        )
        if leads or (namespace, name) == (SOPERATOR, MANAGER):
            raise LocalError(
                f"Deployment {name} in namespace {namespace} leads {NEBIUS} already. "
                "Apply examples/slurmcluster.yaml there, or uninstall that operator first."
            )
