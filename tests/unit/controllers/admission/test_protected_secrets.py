"""Secrets of a SlurmCluster cannot be lost by a mistake while the cluster exists."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from penstock.api.kubernetes.meta import Json, KubeObject, ObjectMeta
from penstock.api.nebius.slurmcluster import SLURM_CLUSTERS
from penstock.controllers.admission.protected_secrets import ProtectedSecrets
from penstock.controllers.caches.store import CacheStore
from penstock.kube import Client, Manager
from penstock.kube.webhook.review import Answer, answer
from support.nebius import made
from unit.controllers.stage import put
from unit.kube.fake_api import FakeApi

STORE_KEYS = {"slurm.nebius.ai/webhook": "true"}
FOR = {"slurm.nebius.ai/cluster": "ml"}


def secret(data: str = "eA==", labels: Json | None = None, **meta: Any) -> Json:
    named = {"namespace": "a", "name": "s", "labels": STORE_KEYS if labels is None else labels}
    return {"metadata": {"annotations": FOR, **named, **meta}, "data": {"key": data}}


def ask(
    operation: str,
    new: Json | None,
    old: Json | None,
    *clusters: KubeObject,
    namespaces: tuple[str, ...] = (),
) -> Answer:
    store = CacheStore(Manager(Client(FakeApi())))
    handler = ProtectedSecrets(store.of, namespaces)
    put(store.of(SLURM_CLUSTERS), *clusters)
    request = {
        "uid": "u",
        "operation": operation,
        "kind": {"group": "", "version": "v1", "kind": "Secret"},
        "namespace": "a",
        "name": "s",
        "object": new,
        "oldObject": old,
    }
    body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    given: list[Answer] = []
    answer(json.dumps(body).encode(), lambda one: given.append(handler.validate(one)) or given[0])
    return given[0]


def ml(namespace: str = "a", deleting: str = "") -> KubeObject:
    meta = ObjectMeta(name="ml", namespace=namespace, uid="u", deletion_timestamp=deleting or None)
    return msgspec.structs.replace(made("slurmcluster-5.0-0"), metadata=meta)


def test_a_secret_is_kept_while_its_cluster_exists() -> None:
    found = ask("DELETE", None, secret(), ml())
    assert [one.message for one in found.causes] == [
        "Secret s has passwords of SlurmCluster ml: delete that first"
    ]
    assert ask("DELETE", None, secret()).allowed
    assert ask("DELETE", None, secret(), ml("other")).allowed
    assert ask("DELETE", None, secret(labels={}), ml()).allowed


def test_a_secret_goes_with_a_cluster_that_is_being_deleted() -> None:
    """A foreground deletion waits for its Secrets: both would stay for ever."""
    assert ask("DELETE", None, secret(), ml(deleting="2026-01-01T00:00:00Z")).allowed


def test_a_secret_cannot_be_changed_and_names_its_cluster() -> None:
    assert not ask("UPDATE", secret("eQ=="), secret(), ml()).allowed
    assert not ask("UPDATE", secret(labels={}), secret(), ml()).allowed
    assert ask("UPDATE", secret(), secret(), ml()).allowed
    assert ask("CREATE", secret(), None).allowed
    assert not ask("CREATE", secret(annotations={}), None).allowed


def test_secrets_of_other_namespaces_are_no_concern_of_an_operator_of_some() -> None:
    assert ask("UPDATE", secret("eQ=="), secret(), ml(), namespaces=("b",)).allowed
    assert not ask("UPDATE", secret("eQ=="), secret(), ml(), namespaces=("a",)).allowed
