"""No right to write is there for nothing (A36), and none lacks that a plan needs.

Simulated API servers reject nothing, so what plans write is compared with the operators' Roles.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from fault_plans.play import play
from fault_plans.pool import plan_for
from penstock.base import yaml_text
from penstock.render.nebius.cluster import power_account
from penstock.render.nebius.inputs import ClusterInputs
from support.nebius import ABSENT
from support.nebius_clusters import CURRENT, of_shape
from support.rights import Right, rights

ROOT = Path(__file__).parents[2]
MANIFESTS = ("operator.yaml", "soperator.yaml")
READS = frozenset({"get", "list", "watch"})
PLAYED = (
    *(("usual", seed) for seed in (1, 5, 6)),
    *(("nebius", seed) for seed in (1, 3, 5, 9)),
    ("nebius-left", 1),
    ("external", 1),
)
"""Kinds and seeds of plans that write most kinds of objects."""
OF_A_VALUE = {("patch", "/nodes"), ("patch", "/nodes/status"), ("delete", "/nodes")}
"""Given by the chart where the operator takes Kubernetes nodes out of service."""
ELSEWHERE: dict[str, tuple[tuple[str, ...], str]] = {
    "/persistentvolumeclaims": (("patch",), "model/test_nodeset_modes.py"),
    "/serviceaccounts": (("delete",), "unit/controllers/nebius/test_exporter.py"),
    "admissionregistration.k8s.io/mutatingwebhookconfigurations": (
        ("patch",),
        "unit/controllers/admission/test_webhooks.py",
    ),
    "admissionregistration.k8s.io/validatingwebhookconfigurations": (
        ("patch",),
        "unit/controllers/admission/test_webhooks.py",
    ),
    "apps.kruise.io/statefulsets": (("patch",), "unit/controllers/nebius/test_switch_over.py"),
    "apps/daemonsets": (("create", "patch", "delete"), "api/test_node_outages.py"),
    "apps/statefulsets": (("delete",), "unit/controllers/slinky/test_accounting.py"),
    "batch/jobs": (("delete",), "unit/controllers/nebius/test_jail.py"),
    "k8s.mariadb.com/grants": (("create",), "unit/controllers/nebius/test_accounting.py"),
    "k8s.mariadb.com/mariadbs": (("create",), "unit/controllers/nebius/test_accounting.py"),
    "monitoring.coreos.com/podmonitors": (
        ("create", "delete"),
        "unit/controllers/nebius/test_exporter.py",
    ),
    "monitoring.coreos.com/servicemonitors": (
        ("delete",),
        "unit/controllers/cluster/test_metrics_monitor.py",
    ),
    "penstock.dev/backups/status": (("patch",), "unit/controllers/nebius/test_backup.py"),
    "penstock.dev/jailupgrades/status": (
        ("patch",),
        "unit/controllers/nebius/test_jail_upgrade.py",
    ),
    "penstock.dev/partitions": (("patch",), "api/test_drift.py"),
    "penstock.dev/partitions/status": (("patch",), "api/test_partitions.py"),
    "penstock.dev/restores": (("patch",), "unit/controllers/nebius/test_backup.py"),
    "penstock.dev/restores/status": (("patch",), "unit/controllers/nebius/test_backup.py"),
    "rbac.authorization.k8s.io/rolebindings": (
        ("delete",),
        "unit/controllers/nebius/test_exporter.py",
    ),
    "rbac.authorization.k8s.io/roles": (("delete",), "unit/controllers/nebius/test_exporter.py"),
    "slinky.slurm.net/controllers": (("patch",), "api/test_drift.py"),
    "slurm.nebius.ai/activechecks": (
        ("create", "delete"),
        "unit/controllers/nebius/test_checks.py",
    ),
    "slurm.nebius.ai/nodeconfigurators/status": (("patch",), "api/test_node_outages.py"),
    "slurm.nebius.ai/nodesetpowerstates": (
        ("patch",),
        "unit/controllers/nebius/test_power_state.py",
    ),
    "slurm.nebius.ai/nodesetpowerstates/status": (
        ("patch",),
        "unit/controllers/nebius/test_power_state.py",
    ),
}
"""Verbs by resource that these plans do not use, and the tests that do."""


def granted() -> set[Right]:
    """To the operators."""
    return _of_roles(ROOT / "deploy" / name for name in MANIFESTS)


def handed_on() -> set[Right]:
    """To daemons, by the operator: the API server lets nobody give a right that they lack."""
    objects = power_account.objects(_powered())
    of_power = {right for one in objects for right in rights(one.get("rules", ()))}
    return of_power | _of_roles((ROOT / "tests/golden").glob("*.yaml"))


def _powered() -> ClusterInputs:
    """A cluster with a NodeSet on demand, and without an account of its user's."""
    return of_shape(CURRENT, {"spec.slurmNodes.controller.serviceAccountName": ABSENT}).inputs


def _of_roles(files: Iterable[Path]) -> set[Right]:
    every = (one for file in files for one in yaml_text.documents(file.read_text()))
    roles = (one for one in every if one and one.get("kind") in ("Role", "ClusterRole"))
    return {right for one in roles for right in rights(one["rules"])}


@pytest.fixture(scope="module")
def used() -> set[Right]:
    return {
        right for kind, seed in PLAYED for right in play(plan_for(seed, kind), silence=0.0).rights
    }


def test_plans_write_nothing_that_the_operators_may_not(used: set[Right]) -> None:
    assert used - granted() <= OF_A_VALUE


def test_each_right_to_write_is_used_by_plans_handed_on_or_named_here(used: set[Right]) -> None:
    left = {
        (verb, resource)
        for verb, resource in granted() - used - handed_on()
        if verb not in READS and not resource.endswith("/finalizers")
    }
    named = {(verb, resource) for resource, (verbs, _) in ELSEWHERE.items() for verb in verbs}
    assert left == named
    assert all((ROOT / "tests" / test).is_file() for _, test in ELSEWHERE.values())
