"""Faults of Slinky's kinds, beyond what their schemas can express.

The API server rejects most of them by the schema already. They are found again here, because
objects may have been stored under an older schema, and some rules need more than CEL can see.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

from penstock.api.admission import Problem, impossible_names
from penstock.api.cluster.cluster_ref import ControllerRef, controller_ref_problems
from penstock.api.embedded_database_rules import database_problems
from penstock.api.kubernetes import shapes
from penstock.api.kubernetes.meta import Json, LocalObjectReference, ObjectMeta
from penstock.api.kubernetes.resource import is_object_name
from penstock.api.kubernetes.spec_parts import HOSTNAME_PATTERN, PodTemplate
from penstock.api.slinky import names
from penstock.api.slinky.accounting import Accounting, AccountingSpec
from penstock.api.slinky.common import (
    LONGEST_CONF,
    LONGEST_KEYS,
    LONGEST_LINE,
    LONGEST_WORDS,
    ExternalConfig,
)
from penstock.api.slinky.controller import MOST_BACKUPS, Controller, ControllerSpec
from penstock.api.slinky.loginset import LoginSet
from penstock.api.slinky.nodeset import MOST_REPLICAS, NodeSet, ScheduledUpdate, UpdateStrategy
from penstock.api.slinky.related_objects import (
    accounting_references,
    controller_references,
    token_references,
)
from penstock.api.slinky.restapi import RestApi
from penstock.api.slinky.token import Token
from penstock.base import duration
from penstock.base.host import is_host
from penstock.slurm.conf.lines import is_one_line
from penstock.slurm.reservation_schedule import schedule_problems

CLUSTER_NAME_LIMIT = 40
HOST_LABEL_LIMIT = 63

_PERCENT = re.compile(r"[0-9]*[1-9][0-9]*%")
_HOSTNAME = re.compile(HOSTNAME_PATTERN)
_CLUSTER_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*")
_EXTERNAL_NAME = "ExternalName"


def controller_problems(obj: Controller) -> Iterator[Problem]:
    """Faults of a Controller."""
    spec = obj.spec
    cluster = names.cluster_name(obj)
    if len(cluster) > CLUSTER_NAME_LIMIT:
        yield Problem(
            "spec.clusterName",
            f"ClusterName {cluster!r} has {len(cluster)} characters, Slurm takes "
            f"{CLUSTER_NAME_LIMIT}: set a shorter clusterName",
        )
    yield from _long("spec.extraConf", spec.extra_conf, LONGEST_CONF)
    if not _CLUSTER_NAME.fullmatch(cluster):
        yield Problem(
            "spec.clusterName",
            f"{cluster[:60]!r} can be no ClusterName: write letters, digits, _, - and ., not a . "
            "first",
        )
    yield from _external(spec.external, spec.external_config)
    claim = spec.persistence.existing_claim if spec.persistence else ""
    if spec.sssd_conf_ref is not None:
        yield from _named("spec.sssdConfRef.name", spec.sssd_conf_ref.name)
    if spec.ha and spec.ha.enabled and not (spec.persistent and claim):
        yield Problem(
            "spec.ha",
            "high availability needs a shared state directory: name a ReadWriteMany PVC in "
            "persistence.existingClaim",
        )
    if spec.ha and spec.ha.backups > MOST_BACKUPS:
        yield Problem("spec.ha.backups", f"{spec.ha.backups} are more than {MOST_BACKUPS}")
    yield from _one_key(spec)
    yield from impossible_names(controller_references(obj), obj.metadata.namespace)
    for field, refs in (
        ("configFileRefs", spec.config_file_refs),
        ("prologScriptRefs", spec.prolog_script_refs),
        ("epilogScriptRefs", spec.epilog_script_refs),
        ("prologSlurmctldScriptRefs", spec.prolog_slurmctld_script_refs),
        ("epilogSlurmctldScriptRefs", spec.epilog_slurmctld_script_refs),
    ):
        yield from _references(f"spec.{field}", refs or ())
    for field, container in (
        ("slurmctld", spec.slurmctld),
        ("reconfigure", spec.reconfigure),
        ("logfile", spec.logfile),
    ):
        yield from _container(f"spec.{field}", container)
    yield from _template(spec.template, host_network=False)
    yield from _service(spec.service.spec)


def nodeset_problems(obj: NodeSet) -> Iterator[Problem]:
    """Faults of a NodeSet."""
    spec = obj.spec
    yield from _controller_ref(obj.metadata, spec.controller_ref)
    yield from _container("spec.slurmd", spec.slurmd)
    yield from _container("spec.logfile", spec.logfile)
    yield from _template(spec.template)
    if spec.replicas > MOST_REPLICAS:
        yield Problem("spec.replicas", f"{spec.replicas} are more than {MOST_REPLICAS}")
    yield from _long_names(obj)
    if spec.partition:
        yield from _long("spec.partition.config", spec.partition.config, LONGEST_LINE)
    yield from _long("spec.extraConf", spec.extra_conf, LONGEST_LINE)
    if not all("=" in word[1:] for word in spec.extra_conf.split()):
        yield Problem(
            "spec.extraConf", "write Key=Value words separated by blanks, such as Weight=10"
        )
    if spec.partition and "\n" in spec.partition.config:
        yield Problem("spec.partition.config", "write all parameters on one line")
    elif spec.partition and not is_one_line(spec.partition.config):
        yield Problem(
            "spec.partition.config",
            "remove control characters and a backslash at the end, which joins the next line to it",
        )
    if spec.ssh:
        yield from _long("spec.ssh.extraSshdConfig", spec.ssh.extra_sshd_config, LONGEST_CONF)
    if spec.ssh and spec.ssh.enabled and spec.ssh.sssd_conf_ref is not None:
        yield from _named("spec.ssh.sssdConfRef.name", spec.ssh.sssd_conf_ref.name)
    yield from _strategy(spec.update_strategy)
    claims = [_pvc_name(claim) for claim in spec.volume_claim_templates or ()]
    for index, claim in enumerate(spec.volume_claim_templates or ()):
        path = f"spec.volumeClaimTemplates[{index}]"
        yield from _shape_problems(path, claim, shapes.PVC)
    if "" in claims:
        yield Problem("spec.volumeClaimTemplates", "give each template a metadata.name")
    yield from _duplicates("spec.volumeClaimTemplates", filter(None, claims))


def _long_names(obj: NodeSet) -> Iterator[Problem]:
    if obj.spec.scaling_mode == "DaemonSet":
        longest = names.node_pod_name(obj, "")
        message = f"the pod name {longest!r} has {len(longest)} characters, a label takes"
        advice = "give the NodeSet a shorter name"
    else:
        longest = names.slurm_node_name(obj, max(obj.spec.replicas - 1, 0))
        message = f"the host name {longest!r} has {len(longest)} characters, DNS takes"
        advice = "set a shorter template.spec.hostname"
    if len(longest) > HOST_LABEL_LIMIT:
        yield Problem("metadata.name", f"{message} {HOST_LABEL_LIMIT}: {advice}")


def loginset_problems(obj: LoginSet) -> Iterator[Problem]:
    """Faults of a LoginSet."""
    spec = obj.spec
    yield from _controller_ref(obj.metadata, spec.controller_ref)
    if spec.sssd_conf_ref is not None:
        yield from _named("spec.sssdConfRef.name", spec.sssd_conf_ref.name)
    yield from _long("spec.extraSshdConfig", spec.extra_sshd_config, LONGEST_CONF)
    yield from _long("spec.rootSshAuthorizedKeys", spec.root_ssh_authorized_keys, LONGEST_KEYS)
    yield from _container("spec.login", spec.login)
    yield from _container("spec.initconf", spec.initconf)
    yield from _template(spec.template)
    yield from _service(spec.service.spec)


def restapi_problems(obj: RestApi) -> Iterator[Problem]:
    """Faults of a RestApi."""
    yield from _controller_ref(obj.metadata, obj.spec.controller_ref)
    yield from _container("spec.slurmrestd", obj.spec.slurmrestd)
    yield from _template(obj.spec.template)
    yield from _service(obj.spec.service.spec)


def accounting_problems(obj: Accounting) -> Iterator[Problem]:
    """Faults of an Accounting."""
    spec = obj.spec
    yield from _long("spec.extraConf", spec.extra_conf, LONGEST_CONF)
    yield from _external(spec.external, spec.external_config)
    yield from _one_key(spec)
    yield from impossible_names(accounting_references(obj), obj.metadata.namespace)
    if not spec.external:
        if spec.slurm_key_ref is None and spec.munge_key_ref is None:
            yield Problem("spec.slurmKeyRef", "name the Secret with slurm.key")
        if spec.effective_jwt_key_ref is None:
            yield Problem("spec.jwtKeyRef", "name the Secret with jwt.key")
        if spec.storage_config is None and spec.embedded_database is None:
            yield Problem(
                "spec.storageConfig", "name the host of the database, or set spec.embeddedDatabase"
            )
        if spec.storage_config is not None and spec.embedded_database is not None:
            yield Problem(
                "spec.embeddedDatabase", "slurmdbd has one database: remove spec.storageConfig"
            )
    if spec.embedded_database is not None:
        yield from database_problems("spec.embeddedDatabase", spec.embedded_database)
        longest = f"{names.accounting_database(obj)}-0123456789"
        if len(longest) > HOST_LABEL_LIMIT:
            yield Problem(
                "metadata.name",
                f"labels of its database's pod have {len(longest)} characters and Kubernetes takes "
                f"{HOST_LABEL_LIMIT}: choose a shorter name",
            )
    if spec.storage_config is not None:
        for field in ("host", "database", "username"):
            text: str = getattr(spec.storage_config, field)
            yield from _long(f"spec.storageConfig.{field}", text, LONGEST_WORDS)
        if len(host := spec.storage_config.host) <= LONGEST_WORDS and not is_host(host):
            yield Problem("spec.storageConfig.host", _no_host(host))
    yield from _container("spec.slurmdbd", spec.slurmdbd)
    yield from _template(spec.template, host_network=False)
    yield from _service(spec.service.spec)


def _one_key(spec: ControllerSpec | AccountingSpec) -> Iterator[Problem]:
    if spec.slurm_key_ref is not None and spec.munge_key_ref is not None:
        yield Problem("spec.mungeKeyRef", "spec.slurmKeyRef is for auth/slurm: remove one of them")


def token_problems(obj: Token) -> Iterator[Problem]:
    """Faults of a Token."""
    spec = obj.spec
    if spec.effective_jwt_key_ref is None:
        yield Problem("spec.jwtKeyRef", "name the Secret with jwt.key")
    yield from impossible_names(token_references(obj), obj.metadata.namespace)
    yield from _named("spec.username", spec.username)
    if spec.identity is not None:
        yield from _long("spec.identity.gecos", spec.identity.gecos, LONGEST_WORDS)
    if spec.lifetime:
        try:
            duration.seconds(spec.lifetime)
        except ValueError as error:
            yield Problem("spec.lifetime", str(error))
    secret, key = names.token_secret(obj), spec.effective_jwt_key_ref
    yield from _named("spec.secretRef.name", secret.name)
    if secret.name and not is_object_name(secret.name):
        path = "spec.secretRef.name" if spec.secret_ref is not None else "spec.username"
        yield Problem(
            path,
            f"{secret.name[:60]!r} can be the name of no Secret: write small letters, digits, - "
            "and . in spec.secretRef.name",
        )
    if key is not None and secret.name == key.name:
        yield Problem("spec.secretRef.name", "the key is in there: name another Secret")


def _controller_ref(meta: ObjectMeta, ref: ControllerRef) -> Iterator[Problem]:
    return (Problem(*found) for found in controller_ref_problems(ref, meta.namespace))


def _strategy(strategy: UpdateStrategy) -> Iterator[Problem]:
    path = "spec.updateStrategy"
    most = strategy.rolling_update.max_unavailable
    if not (_PERCENT.fullmatch(most) if isinstance(most, str) else most >= 1):
        yield Problem(
            f"{path}.rollingUpdate.maxUnavailable",
            f"{most!r} allows no update at all: write a number of at least 1, or a percentage",
        )
    needed = strategy.type == "ScheduledUpdate"
    update = strategy.scheduled_update
    if update is None and needed:
        update = ScheduledUpdate()
    if update is not None:
        found = schedule_problems(update.start_time, update.duration, update.flags, needed=needed)
        for field, message in found:
            yield Problem(f"{path}.scheduledUpdate.{field}", message)


def _external(external: bool, config: ExternalConfig | None) -> Iterator[Problem]:
    if external and (config is None or not config.host):
        yield Problem("spec.externalConfig.host", "name the host of the external daemon")
    if config is not None and config.host and not is_host(config.host):
        yield Problem("spec.externalConfig.host", _no_host(config.host))


def _no_host(host: str) -> str:
    return f"{host[:60]!r} is no host: write a DNS name or an address, without a port"


def _service(spec: Json) -> Iterator[Problem]:
    """Faults of the Service of a daemon."""
    yield from _shape_problems("spec.service.spec", spec, shapes.SERVICE)
    if spec.get("type") == _EXTERNAL_NAME:
        yield Problem(
            "spec.service.spec.type",
            f"{_EXTERNAL_NAME} leads to no pod: write ClusterIP, NodePort or LoadBalancer",
        )


def _template(template: PodTemplate, *, host_network: bool = True) -> Iterator[Problem]:
    spec = template.spec
    path = "spec.template.spec"
    if spec.get("hostNetwork") and not host_network:
        yield Problem(
            f"{path}.hostNetwork",
            "not offered for this kind: its clients find it by a Service and fixed names; "
            "remove it",
        )
    hostname = spec.get("hostname", "")
    if hostname and not (isinstance(hostname, str) and _HOSTNAME.fullmatch(hostname)):
        yield Problem(
            f"{path}.hostname",
            f"{hostname!r} is not a host name: write lower-case letters, digits and dashes; a "
            "trailing dash is followed by the ordinal",
        )
    found = list(_shape_problems(path, spec, shapes.POD))
    yield from found
    if not found:
        for field in ("initContainers", "containers"):
            for index, container in enumerate(spec.get(field) or ()):
                yield from _image(f"{path}.{field}[{index}]", container)


def _container(path: str, container: object) -> Iterator[Problem]:
    if not isinstance(container, dict):
        yield Problem(path, "write a container: a mapping with image, env and so on")
        return
    fields = cast("Json", container)
    yield from _shape_problems(path, fields, shapes.CONTAINER)
    yield from _image(path, fields)


def _image(path: str, container: Json) -> Iterator[Problem]:
    image = container.get("image")
    if image is not None and not isinstance(image, str):
        yield Problem(f"{path}.image", "write the image as one string: registry/name:tag")


def _shape_problems(path: str, value: object, shape: shapes.Shape) -> Iterator[Problem]:
    if found := list(shapes.excess(path, value)):
        return (Problem(*one) for one in found)
    return (Problem(*one) for one in shapes.shape_problems(path, value, shape))


def _references(path: str, refs: Sequence[LocalObjectReference]) -> Iterator[Problem]:
    if any(not ref.name for ref in refs):
        yield Problem(path, "give each reference a name")
    yield from _duplicates(path, (ref.name for ref in refs if ref.name))


def _duplicates(path: str, found: Iterable[str]) -> Iterator[Problem]:
    for name, count in Counter(found).items():
        if count > 1:
            yield Problem(path, f"{name!r} is there {count} times: keep one")


def _long(path: str, text: str, most: int) -> Iterator[Problem]:
    if len(text) > most:
        yield Problem(path, f"{len(text)} characters are more than {most}: write fewer")


def _named(path: str, name: str) -> Iterator[Problem]:
    if not name:
        yield Problem(path, "must not be empty")


def _pvc_name(template: Json) -> str:
    meta: Any = template.get("metadata")
    return str(cast("Json", meta).get("name") or "") if isinstance(meta, dict) else ""
