"""Pod security: namespaces that enforce it admit the pods of the operator and of slurmctld."""

from __future__ import annotations

import secrets

import pytest
import yaml

from penstock.api.kubernetes.meta import Json
from penstock.local.errors import LocalError
from penstock.local.node import Node
from support.charts import render
from support.operator_kit import lab
from support.partitions import API, CONTROLLER, REF, RESTAPI

# The first test that needs Helm compiles it, on a machine where everything else compiles as well.
pytestmark = [pytest.mark.api, pytest.mark.timeout(1800)]


def admit(node: Node, level: str, template: Json) -> None:
    """Create a pod, without storing it, where that level is enforced. Raises LocalError."""
    name = f"{level}-{secrets.token_hex(2)}"
    spec: Json = {**template["spec"], "serviceAccountName": "default"}
    pod: Json = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one"}, "spec": spec}
    node.kubectl("create", "namespace", name)
    try:
        node.kubectl("label", "namespace", name, f"pod-security.kubernetes.io/enforce={level}")
        account: Json = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {}}
        account["metadata"]["name"] = "default"
        node.kubectl("apply", "-n", name, "-f", "-", stdin=yaml.safe_dump(account))
        node.kubectl("create", "--dry-run=server", "-n", name, "-f", "-", stdin=yaml.safe_dump(pod))
    finally:
        node.kubectl("delete", "namespace", name, "--wait=false")


def test_the_operators_pod_is_admitted_where_restricted_is_enforced(api_node: Node) -> None:
    """S028; one with a capability more is not."""
    found = render(None, chart="slurm-operator", release="slurm-operator", namespace="slinky")
    template: Json = found["Deployment slurm-operator"]["spec"]["template"]
    admit(api_node, "restricted", template)
    own: Json = template["spec"]["containers"][0]
    more: Json = {**own["securityContext"], "capabilities": {"add": ["SYS_ADMIN"]}}
    spec: Json = {**template["spec"], "containers": [{**own, "securityContext": more}]}
    with pytest.raises(LocalError, match="restricted"):
        admit(api_node, "restricted", {"spec": spec})


async def test_pods_of_slurmctld_and_slurmrestd_need_no_privilege(api_node: Node) -> None:
    """S028: `baseline` admits them."""
    async with lab(api_node) as lab_, lab_.operator():
        # A claim is a volume of the StatefulSet's, not of its template.
        spec = {**CONTROLLER["spec"], "persistence": {"enabled": False}}
        await lab_.apply({**CONTROLLER, "spec": spec}, RESTAPI)
        await lab_.until(lambda: bool(lab_.names("StatefulSet") and lab_.names("Deployment")))
        for kind in ("StatefulSet", "Deployment"):
            for one in lab_.all(kind):
                admit(api_node, "baseline", one["spec"]["template"])


LEAST: Json = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
PROFILE: Json = {"spec": {"securityContext": {"seccompProfile": {"type": "RuntimeDefault"}}}}


async def test_the_control_plane_fits_restricted_and_logins_fit_baseline(api_node: Node) -> None:
    """S172: by the fields of docs/reference/privileges.md."""
    own: Json = {"securityContext": LEAST}
    controller = {
        **CONTROLLER["spec"],
        "persistence": {"enabled": False},
        "slurmctld": own,
        "reconfigure": own,
        "logfile": own,
        "template": PROFILE,
    }
    restapi = {**RESTAPI["spec"], "slurmrestd": own, "template": PROFILE}
    login: Json = {"apiVersion": API, "kind": "LoginSet", "metadata": {"name": "login"}}
    async with lab(api_node) as lab_, lab_.operator():
        await lab_.apply(
            {**CONTROLLER, "spec": controller},
            {**RESTAPI, "spec": restapi},
            {**login, "spec": REF},
        )
        await lab_.until(lambda: len(lab_.all("Deployment")) == 2 and lab_.names("StatefulSet"))
        for one in (*lab_.all("StatefulSet"), *lab_.all("Deployment")):
            level = "baseline" if one["metadata"]["name"] == "login" else "restricted"
            admit(api_node, level, one["spec"]["template"])
