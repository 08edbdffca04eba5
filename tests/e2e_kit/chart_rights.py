"""Rights that the operator's chart gives by its values."""

from __future__ import annotations

import yaml

from e2e_kit.api import Json
from penstock.local.recipes import ROOT

_API = "rbac.authorization.k8s.io"


def cluster_rights(part: str, account: Json, suffix: str) -> list[Json]:
    """The ClusterRole of one part of the chart's rights, bound to a ServiceAccount."""
    rights = yaml.safe_load((ROOT / "charts/slurm-operator/files/rights.yaml").read_text())
    name = f"{part}-{suffix}"
    meta = {"apiVersion": f"{_API}/v1", "metadata": {"name": name}}
    role = {"apiGroup": _API, "kind": "ClusterRole", "name": name}
    subjects = [{"kind": "ServiceAccount", **account}]
    return [
        {**meta, "kind": "ClusterRole", "rules": rights[part]},
        {**meta, "kind": "ClusterRoleBinding", "roleRef": role, "subjects": subjects},
    ]
