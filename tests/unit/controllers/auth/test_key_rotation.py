"""Which keys a cluster's daemons are given while its slurm.key changes.

Feature row 10, defect D17.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec

from penstock.api.kubernetes.kinds import Secret
from penstock.api.kubernetes.meta import ObjectMeta
from penstock.api.slinky.accounting import Accounting
from penstock.api.slinky.controller import Controller
from penstock.controllers.observed.references import (
    accountings_using_secret,
    controllers_using_secret,
    sharing_key,
)
from penstock.controllers.observed.slinky_clusters import SlinkyClusters
from penstock.render.slinky.config.config_maps import config_hash, files, mounted
from penstock.slurm.auth.key_rotation import Phase, Ring
from unit.controllers.stage import new_clusters, put

KEY = {"name": "own", "key": "slurm.key"}
RING = Ring(b"o" * 64, "former", "former")
LEARN = replace(RING, next=b"n" * 64, phase=Phase.LEARN, used=True)


def made(kind: type[Any], name: str, **spec: Any) -> Any:
    meta = {"name": name, "namespace": "slurm", "uid": f"{kind.__name__}-{name}"}
    return msgspec.convert({"metadata": meta, "spec": spec}, kind)


def clusters(*names: str) -> tuple[SlinkyClusters, list[Controller]]:
    found = new_clusters()
    every = [
        made(Controller, name, slurmKeyRef=KEY, accountingRef={"name": "records"}) for name in names
    ]
    for one in every:
        put(found.caches.controllers, one)
    put(found.caches.secrets, Secret(metadata=meta("own"), data={"slurm.key": "a2V5"}))
    return found, every


def meta(name: str, version: int = 1) -> ObjectMeta:
    return ObjectMeta(name=name, namespace="slurm", uid=name, resource_version=str(version))


def turn(found: SlinkyClusters, controller: Controller, ring: Ring, version: int) -> None:
    name = f"{controller.metadata.name}-auth-slurm-ring"
    put(found.caches.secrets, Secret(metadata=meta(name, version), data=ring.data))


def test_a_changed_key_restarts_nobody_by_itself() -> None:
    """slurmctld's pod keeps the mark of the key that it was made with, and gets a file instead."""
    found, (controller,) = clusters("a")
    turn(found, controller, RING, 1)
    before = found.declared(controller)
    assert (before.slurm_key_hash, before.clients_key_hash) == ("former", "former")
    assert "slurm.jwks" not in mounted(before, files(before))

    turn(found, controller, LEARN, 2)
    now = found.declared(controller)
    assert (now.slurm_key_hash, now.clients_key_hash) == ("former", "former")
    assert config_hash(now) != config_hash(before)

    turn(found, controller, replace(LEARN, phase=Phase.CLIENTS, clients="new"), 3)
    later = found.declared(controller)
    assert (later.slurm_key_hash, later.clients_key_hash) == ("former", "new")
    assert config_hash(later) == config_hash(now)


def test_an_outside_slurmctld_has_no_ring_and_neither_has_a_key_that_is_absent() -> None:
    found, (controller,) = clusters("a")
    turn(found, controller, RING, 1)
    spec = msgspec.structs.replace(controller.spec, external=True)
    assert found.ring(msgspec.structs.replace(controller, spec=spec)) is None
    put(found.caches.secrets, Secret(metadata=meta("own", 2), data={}))
    assert found.declared(controller).slurm_key_hash == ""


def test_slurmdbd_goes_along_with_all_clusters_that_have_its_key() -> None:
    found, every = clusters("b", "a")
    put(found.caches.controllers, made(Controller, "other", accountingRef={"name": "records"}))
    records = made(Accounting, "records", slurmKeyRef=KEY)
    assert [one.metadata.name for one in sharing_key(records, found.caches.store)] == ["a", "b"]
    assert sharing_key(made(Accounting, "records"), found.caches.store) == []
    ring = Secret(metadata=meta(f"{every[0].metadata.name}-auth-slurm-ring"))
    put(found.caches.accountings, records)
    assert accountings_using_secret(ring, found.caches.store) == ["slurm/records"]
    assert controllers_using_secret(ring, found.caches.store) == ["slurm/b"]
