"""Whole manifests of SlurmClusters, byte for byte.

`PENSTOCK_WRITE_GOLDEN=1 pytest ...` writes them again.
"""

from __future__ import annotations

import os
import random
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
import yaml

from penstock.api.kubernetes.spec_parts import SecretKeySelector
from penstock.api.nebius.accounting import DatabaseTls
from penstock.api.nebius.active_check import ActiveCheck
from penstock.api.penstock.backup import Backup
from penstock.api.penstock.jail_upgrade import JailUpgrade
from penstock.api.penstock.restore import Restore
from penstock.model.jail import UpgradeAction
from penstock.render.nebius import jail_upgrade
from penstock.render.nebius.backup import job as backup_job
from penstock.render.nebius.check import account, cron_job
from penstock.render.parts.digest import canonical_json
from penstock.translate.nebius.database import Database
from support import nebius
from support.nebius_clusters import (
    CURRENT,
    OLDER,
    SHAPES,
    Rendered,
    of_shape,
    per_worker,
    with_auth_slurm,
    without_jail,
)

CHECKS = 5
GOLDEN = Path(__file__).parents[3] / "golden"


class Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


Dumper.add_representer(str, _text)


_PASSWORD = {"name": "restic", "key": "password"}
_META = {"namespace": "slurm", "uid": "uid-1"}
NIGHTLY = msgspec.convert(
    {
        "metadata": {**_META, "name": "nightly"},
        "spec": {
            "clusterRef": {"name": "slurm"},
            "schedule": "0 3 * * *",
            "repository": {
                "pvc": {"claimName": "a", "path": "b/c"},
                "passwordSecretRef": _PASSWORD,
            },
            "retention": {"keepLast": 3, "keepWithin": "14d"},
        },
    },
    Backup,
)
ONCE = msgspec.convert(
    {
        "metadata": {**_META, "name": "once"},
        "spec": {
            "clusterRef": {"name": "slurm"},
            "parts": ["jail"],
            "image": "mine/restic:1",
            "repository": {
                "s3": {
                    "endpoint": "https://s3.example.com/",
                    "bucket": "slurm",
                    "path": "one",
                    "region": "eu",
                    "credentialsSecretName": "s3",
                },
                "passwordSecretRef": _PASSWORD,
            },
        },
    },
    Backup,
)
BACK = msgspec.convert(
    {
        "metadata": {**_META, "name": "back"},
        "spec": {"backupRef": {"name": "nightly"}, "parts": ["state"]},
    },
    Restore,
)
NEXT = msgspec.convert(
    {
        "metadata": {**_META, "name": "next"},
        "spec": {"clusterRef": {"name": "slurm"}, "image": "mine/jail:2"},
        "status": {"digest": "d1"},
    },
    JailUpgrade,
)

RECORDS = msgspec.convert(
    {
        "metadata": {**_META, "name": "records"},
        "spec": {
            "clusterRef": {"name": "slurm"},
            "parts": ["state", "accounting"],
            "repository": {"pvc": {"claimName": "a"}, "passwordSecretRef": _PASSWORD},
        },
    },
    Backup,
)
LOAD = msgspec.convert(
    {
        "metadata": {**_META, "name": "load"},
        "spec": {"backupRef": {"name": "records"}, "parts": ["accounting"]},
    },
    Restore,
)
DATABASE = Database(
    "spec.slurmNodes.accounting.externalDB",
    "db.example.com",
    3307,
    "slurm",
    SecretKeySelector(name="database", key="secret"),
    DatabaseTls("authority", "client"),
)

RECORDED = {shape: of_shape(shape) for shape in SHAPES} | {
    "without-jail": without_jail(CURRENT),
    "auth-slurm": with_auth_slurm(CURRENT),
}


@pytest.mark.parametrize("name", RECORDED)
def test_manifests_are_byte_for_byte_as_recorded(name: str):
    found = RECORDED[name].objects()
    text = yaml.dump_all(found, Dumper=Dumper, sort_keys=True, width=1000, allow_unicode=True)
    path = GOLDEN / f"slurmcluster-{name}.yaml"
    if os.environ.get("PENSTOCK_WRITE_GOLDEN"):
        path.write_text(text)
    assert text == path.read_text()


def test_a_worker_with_a_root_of_its_own_is_byte_for_byte_as_recorded():
    """S177."""
    found = per_worker(OLDER)
    text = yaml.dump_all(
        [*found.pvcs(), found.pod()], Dumper=Dumper, sort_keys=True, width=1000, allow_unicode=True
    )
    path = GOLDEN / "slurmcluster-per-worker.yaml"
    if os.environ.get("PENSTOCK_WRITE_GOLDEN"):
        path.write_text(text)
    assert text == path.read_text()


def test_the_objects_of_checks_are_byte_for_byte_as_recorded():
    """S113."""
    inputs = of_shape(CURRENT).inputs
    found = account.objects(inputs.cluster)
    for index in range(CHECKS):
        check = cast("ActiveCheck", nebius.made(f"activechecks-5.0-{index}"))
        found += cron_job.objects(inputs, check, suspend=False)
    text = yaml.dump_all(found, Dumper=Dumper, sort_keys=True, width=1000, allow_unicode=True)
    path = GOLDEN / "slurmcluster-checks.yaml"
    if os.environ.get("PENSTOCK_WRITE_GOLDEN"):
        path.write_text(text)
    assert text == path.read_text()


def test_the_jobs_of_backups_and_restores_are_byte_for_byte_as_recorded():
    """S175."""
    inputs = of_shape(CURRENT).inputs
    found = [
        backup_job.cron_job(inputs, NIGHTLY, suspend=False),
        backup_job.single_job(inputs, ONCE),
        backup_job.restore_job(
            inputs, BACK, backup_job.RestoreSource(NIGHTLY.spec.repository, "slurm", "nightly")
        ),
        backup_job.single_job(inputs, RECORDS, DATABASE),
        backup_job.restore_job(
            inputs,
            LOAD,
            backup_job.RestoreSource(RECORDS.spec.repository, "slurm", "records"),
            DATABASE,
        ),
        # Of a cluster with accounting other parts need no login.
        backup_job.single_job(inputs, ONCE, DATABASE),
    ]
    assert found[-1] == found[1]
    text = yaml.dump_all(found[:-1], Dumper=Dumper, sort_keys=True, width=1000, allow_unicode=True)
    path = GOLDEN / "slurmcluster-backup.yaml"
    if os.environ.get("PENSTOCK_WRITE_GOLDEN"):
        path.write_text(text)
    assert text == path.read_text()


def test_the_jobs_of_a_jail_upgrade_are_byte_for_byte_as_recorded():
    """S168."""
    inputs = of_shape(CURRENT).inputs
    found = [jail_upgrade.job(inputs, NEXT, one, "mine/jail:1") for one in UpgradeAction]
    text = yaml.dump_all(found, Dumper=Dumper, sort_keys=True, width=1000, allow_unicode=True)
    path = GOLDEN / "slurmcluster-jail-upgrade.yaml"
    if os.environ.get("PENSTOCK_WRITE_GOLDEN"):
        path.write_text(text)
    assert text == path.read_text()


@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_node_sets_changes_no_byte(seed: int):
    whole = of_shape(CURRENT)
    sets = list(whole.inputs.node_sets)
    random.Random(seed).shuffle(sets)
    shuffled = Rendered(replace(whole.inputs, node_sets=tuple(sets)), whole.workers)
    assert sorted(map(canonical_json, shuffled.objects())) == sorted(
        map(canonical_json, whole.objects())
    )


@pytest.mark.parametrize("shape", SHAPES)
def test_manifests_are_plain_json_without_nulls_and_status(shape: str):
    def check(value: Any, path: str) -> None:
        # A tuple would differ from a live list for ever.
        assert isinstance(value, dict | list | str | int), path
        if isinstance(value, dict):
            for key, item in cast("dict[str, Any]", value).items():
                check(item, f"{path}.{key}")
        elif isinstance(value, list):
            for number, item in enumerate(cast("list[Any]", value)):
                check(item, f"{path}[{number}]")

    for manifest in of_shape(shape).objects():
        check(manifest, manifest["kind"])
        assert "status" not in manifest


@pytest.mark.parametrize("shape", SHAPES)
def test_any_cluster_domain_will_do(shape: str):
    """S179."""
    usual = canonical_json(of_shape(shape).objects())
    other = canonical_json(of_shape(shape, cluster_domain="example.org").objects())
    assert b"svc.cluster.local" in usual
    assert usual.replace(b"svc.cluster.local", b"svc.example.org") == other
