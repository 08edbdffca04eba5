"""S163: a Controller with the munge key of another cluster: its conditions, and no key ring."""

from __future__ import annotations

import base64
from typing import Any

import msgspec
import pytest

from penstock.api.kubernetes.kinds import Secret
from penstock.api.kubernetes.meta import Condition, ObjectMeta, OwnerReference
from penstock.api.slinky import names
from penstock.api.slinky.accounting import Accounting
from penstock.api.slinky.controller import Controller
from penstock.controllers.observed.references import (
    accountings_using_secret,
    controllers_using_secret,
    is_generated_key,
)
from penstock.controllers.observed.slinky_clusters import SlinkyClusters
from penstock.controllers.slinky.missing import prerequisite_findings
from penstock.render.slinky.cluster import slurmctld
from unit.controllers.stage import new_clusters, put

KEY = {"name": "site", "key": "site.key"}


def made(kind: type[Any], name: str, **spec: Any) -> Any:
    meta = {"name": name, "namespace": "slurm", "uid": f"{kind.__name__}-{name}"}
    return msgspec.convert({"metadata": meta, "spec": spec}, kind)


def secret(name: str, version: int = 1, **data: bytes) -> Secret:
    meta = ObjectMeta(name=name, namespace="slurm", uid=name, resource_version=str(version))
    return Secret(
        metadata=meta,
        data={k.replace("_", "."): base64.b64encode(v).decode() for k, v in data.items()},
    )


def clusters(**spec: Any) -> tuple[SlinkyClusters, Controller]:
    found, controller = new_clusters(), made(Controller, "slurm", mungeKeyRef=KEY, **spec)
    put(found.caches.controllers, controller)
    put(found.caches.secrets, secret("slurm-auth-jwt", jwt_key=b"j" * 64))
    return found, controller


def worked(controller: Controller) -> Controller:
    """The Controller once its slurmctld has worked."""
    conditions = (Condition(type="ConfigApplied", status="True"),)
    status = msgspec.structs.replace(controller.status, conditions=conditions)
    return msgspec.structs.replace(controller, status=status)


def reasons(found: SlinkyClusters, controller: Controller) -> list[tuple[str, str]]:
    every = prerequisite_findings(found, controller, found.declared(controller))
    return [(one.reason, one.message) for one in every]


def test_the_key_is_waited_for_and_not_made() -> None:
    found, controller = clusters()
    (one,) = reasons(found, controller)
    assert one == (
        "SecretNotFound",
        "spec.mungeKeyRef: there is no Secret site with a key site.key in namespace slurm. Create "
        "it, or leave the reference out for auth/slurm",
    )
    assert not is_generated_key("slurm", "slurm-auth-slurm", found.caches.store)


def test_a_short_key_is_named_and_a_right_one_is_taken() -> None:
    found, controller = clusters()
    put(found.caches.secrets, secret("site", site_key=b"k" * 31))
    ((reason, message),) = reasons(found, controller)
    assert reason == "KeyUnusable"
    assert "has 31 bytes, and munge takes 32 or more" in message
    put(found.caches.secrets, secret("site", 2, site_key=b"k" * 32))
    assert reasons(found, controller) == []


def test_a_changed_key_changes_no_pod_and_has_no_ring() -> None:
    """munged of each pod starts again with it."""
    found, controller = clusters()
    put(found.caches.secrets, secret("site", site_key=b"k" * 32))
    before = slurmctld.stateful_set(found.declared(controller))
    put(found.caches.secrets, secret("site", 2, site_key=b"n" * 64))
    put(found.caches.secrets, secret(names.key_ring(controller), workers_jwks=b"{}"))
    assert slurmctld.stateful_set(found.declared(controller)) == before
    assert found.ring(controller) is None


@pytest.mark.parametrize("ref", [{"slurmKeyRef": KEY}, {"mungeKeyRef": {**KEY, "key": "other"}}])
def test_a_slurmdbd_of_another_type_or_key_is_named(ref: dict[str, Any]) -> None:
    found, controller = clusters(accountingRef={"name": "records"})
    put(found.caches.secrets, secret("site", site_key=b"k" * 32))
    put(found.caches.accountings, made(Accounting, "records", **ref))
    ((reason, message),) = reasons(found, controller)
    assert reason == "AuthTypesDiffer"
    assert "give its spec.mungeKeyRef the same reference" in message
    usual = made(Controller, "slurm", accountingRef={"name": "records"})
    put(found.caches.secrets, secret("slurm-auth-slurm", slurm_key=b"k" * 32))
    found_now = [reason for reason, _ in reasons(found, usual)]
    assert found_now == (["AuthTypesDiffer"] if "mungeKeyRef" in ref else [])


def test_a_slurmdbd_with_another_slurm_key_is_named_before_the_first_start() -> None:
    found = new_clusters()
    controller = made(Controller, "slurm", accountingRef={"name": "records"})
    put(found.caches.controllers, controller)
    put(found.caches.accountings, made(Accounting, "records", slurmKeyRef=KEY))
    put(found.caches.secrets, secret("slurm-auth-jwt", jwt_key=b"j" * 64))
    put(found.caches.secrets, secret("slurm-auth-slurm", slurm_key=b"k" * 64))
    put(found.caches.secrets, secret("site", site_key=b"n" * 64))
    ((reason, message),) = reasons(found, controller)
    assert reason == "AuthTypesDiffer"
    assert message == (
        "Accounting records has another slurm.key (Secret site, key site.key) than this Controller "
        "(Secret slurm-auth-slurm, key slurm.key): name the same Secret in spec.slurmKeyRef of both"
    )
    assert reasons(found, worked(controller)) == []
    put(found.caches.secrets, secret("site", 2, site_key=b"k" * 64))
    assert reasons(found, controller) == []


def test_an_empty_key_is_named_before_any_daemon_ends_on_it() -> None:
    found, controller = new_clusters(), made(Controller, "slurm", slurmKeyRef=KEY)
    put(found.caches.controllers, controller)
    put(found.caches.secrets, secret("slurm-auth-jwt", jwt_key=b""))
    put(found.caches.secrets, secret("site", site_key=b""))
    assert reasons(found, controller) == [
        ("KeyUnusable", "spec.slurmKeyRef: key site.key of Secret site is empty: put a key there"),
        ("KeyUnusable", "key jwt.key of Secret slurm-auth-jwt is empty: put a key there"),
    ]


def test_a_key_that_was_generated_for_a_slurmcluster_is_not_begun_with() -> None:
    """A Controller that works with it from a time before this rule is left alone."""
    found, controller = new_clusters(), made(Controller, "slurm")
    put(found.caches.controllers, controller)
    put(found.caches.secrets, secret("slurm-auth-jwt", jwt_key=b"j" * 64))
    owner = OwnerReference(
        api_version="slurm.nebius.ai/v1",
        kind="SlurmCluster",
        name="slurm",
        uid="other",
        controller=True,
    )
    theirs = secret("slurm-auth-slurm", slurm_key=b"k" * 64)
    meta = msgspec.structs.replace(theirs.metadata, owner_references=(owner,))
    put(found.caches.secrets, msgspec.structs.replace(theirs, metadata=meta))
    ((reason, message),) = reasons(found, controller)
    assert reason == "KeyOfOtherCluster"
    assert message == (
        "Secret slurm-auth-slurm was generated for SlurmCluster slurm, whose key stays its own. "
        "Name a Secret of your own in spec.slurmKeyRef, or choose another name"
    )
    assert reasons(found, worked(controller)) == []


def test_a_secret_of_another_cluster_that_the_user_names_is_used() -> None:
    """A munge domain of several clusters."""
    found, controller = clusters()
    owner = OwnerReference(
        api_version="slurm.nebius.ai/v1", kind="SlurmCluster", name="b", uid="b", controller=True
    )
    theirs = secret("site", site_key=b"k" * 64)
    meta = msgspec.structs.replace(theirs.metadata, owner_references=(owner,))
    put(found.caches.secrets, msgspec.structs.replace(theirs, metadata=meta))
    assert reasons(found, controller) == []


def test_its_secret_matters_to_both() -> None:
    found, _ = clusters()
    put(found.caches.accountings, made(Accounting, "records", mungeKeyRef=KEY))
    changed = secret("site", site_key=b"k" * 32)
    assert controllers_using_secret(changed, found.caches.store) == ["slurm/slurm"]
    assert accountings_using_secret(changed, found.caches.store) == ["slurm/records"]
