"""All that a set of declarations is rendered to, as one document to compare."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from declarations import samples
from declarations.properties import KINDS
from penstock.api.kubernetes.meta import Json, KubeObject
from penstock.api.kubernetes.resource import Resource
from penstock.api.penstock.partition import Partition
from penstock.api.slinky import names
from penstock.api.slinky.accounting import Accounting
from penstock.api.slinky.controller import Controller
from penstock.api.slinky.loginset import LoginSet
from penstock.api.slinky.nodeset import NodeSet
from penstock.api.slinky.restapi import RestApi
from penstock.api.slinky.token import Token
from penstock.decide.auth.token import identity_claims, lifetime_s
from penstock.render.parts.default_images import Images
from penstock.render.parts.digest import digest
from penstock.render.slinky import token as token_render
from penstock.render.slinky.accounting import slurmdbd as slurmdbd_render
from penstock.render.slinky.accounting.slurmdbd import SlurmdbdInputs
from penstock.render.slinky.accounting.slurmdbd_conf import slurmdbd_conf
from penstock.render.slinky.cluster import login as loginset
from penstock.render.slinky.cluster import metrics_monitor as monitor
from penstock.render.slinky.cluster import slurmctld as controller
from penstock.render.slinky.cluster import slurmrestd as restapi
from penstock.render.slinky.config.config_maps import config_hash
from penstock.render.slinky.inputs import ClusterInputs
from penstock.render.slinky.nodeset import worker_pod as worker
from penstock.translate.slinky.token_request import token_request

RESOURCES: dict[str, Resource[Any]] = {info.resource.kind: info.resource for info in KINDS}
KIND_TYPES: dict[str, type[KubeObject]] = {info.resource.kind: info.type for info in KINDS}
_SPACE = "stage"
T = TypeVar("T", bound=KubeObject)


def manifest(kind: str, spec: Json) -> Json:
    """An object of a stage, with the schema's placeholders filled in."""
    meta = {"name": samples.NAMES[kind]}
    resource = RESOURCES[kind]
    api = f"{resource.group}/{resource.version}"
    return {"apiVersion": api, "kind": kind, "metadata": meta, "spec": spec}


def placed(value: Any, namespace: str) -> Any:
    """A value in which the stage's namespace is named."""
    text = msgspec.json.encode(value).decode()
    return msgspec.json.decode(text.replace(samples.NAMESPACE, namespace))


def decoded(kind: str, spec: Json) -> KubeObject:
    """An object as the operator reads it. Raises msgspec.ValidationError."""
    return _decoded(KIND_TYPES[kind], {kind: spec})


def _decoded(type_: type[T], specs: Mapping[str, Json]) -> T:
    kind = type_.__name__
    whole = manifest(kind, placed(specs[kind], _SPACE))
    whole["metadata"] |= {"namespace": _SPACE, "uid": f"uid-{kind}"}
    return msgspec.json.decode(msgspec.json.encode(whole), type=type_)


def rendered(specs: Mapping[str, Json]) -> Json:
    """What is made of a stage whose specs are `specs`, the stage's own for kinds it leaves out.

    By kind and name; pods and the revision of the NodeSet are among it, Secrets by their name.
    """
    every = {**samples.BASE, **specs}
    one, nodes = _decoded(Controller, every), _decoded(NodeSet, every)
    rest, login = _decoded(RestApi, every), _decoded(LoginSet, every)
    accounting, token = _decoded(Accounting, every), _decoded(Token, every)
    cluster = ClusterInputs(
        controller=one,
        images=Images.of("penstock/{role}"),
        nodesets=(nodes,),
        partitions=(_decoded(Partition, every),),
        accounting=accounting if _named(one) == accounting.metadata.name else None,
        config_maps=samples.CONFIG_MAPS,
        slurm_key_hash="slurm-key",
        clients_key_hash="slurm-key",
        jwt_key_hash="jwt-key",
    )
    revision = worker.revision(nodes)
    jwks = accounting.spec.jwks_key_ref
    files = samples.CONFIG_MAPS.get(jwks.name, {}) if jwks is not None else {}
    storage = accounting.spec.storage_config
    password = storage.password_key_ref if storage is not None else None
    given = SlurmdbdInputs(
        image="penstock/slurmdbd",
        conf=slurmdbd_conf(accounting, f"{password.name}-{password.key}" if password else ""),
        jwt_key=b"jwt-key",
        slurm_key_hash="slurm-key",
        jwt_key_hash="jwt-key",
        jwks_hash=digest(files[jwks.key]) if jwks is not None and jwks.key in files else "",
    )
    objects = [
        *controller.objects(cluster),
        *monitor.objects(cluster),
        *restapi.objects(cluster, rest),
        *worker.shared_objects(cluster),
        *worker.objects(nodes),
        *loginset.objects(cluster, login),
        *([] if accounting.spec.external else slurmdbd_render.objects(accounting, given)),
        token_render.secret(token, _token_claims(token)),
        worker.controller_revision(nodes, revision, 1),
        *(worker.pod(cluster, nodes, number) for number in range(min(nodes.spec.replicas, 3))),
        *worker.worker_pvcs(nodes, 0),
    ]
    out: Json = {f"{each['kind']} {each['metadata']['name']}": each for each in objects}
    slurmdbd = f"{names.accounting_host(accounting)}:{names.accounting_port(accounting)}"
    return {**out, "configuration": config_hash(cluster), "slurmdbd": slurmdbd}


def _named(one: Controller) -> str:
    return one.spec.accounting_ref.name if one.spec.accounting_ref is not None else ""


def _token_claims(token: Token) -> str:
    """What would be in the token, but for its times, and which key would sign it."""
    spec = token.spec
    request = token_request(spec)
    who = {"sun": spec.username, "s": lifetime_s(request), **identity_claims(request)}
    return msgspec.json.encode([who, spec.effective_jwt_key_ref], order="sorted").decode()
