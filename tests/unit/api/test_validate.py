"""What is wrong with an object, and what is not served."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from penstock.api.kubernetes.kinds import Pod
from penstock.api.kubernetes.meta import KubeObject
from penstock.api.registry import problems, unsupported_fields
from penstock.api.slinky.group import GROUP

FIXTURES = sorted((Path(__file__).parents[2] / "fixtures" / "slinky").glob("*.yaml"))
TYPES = {info.resource.kind: info.type for info in GROUP.kinds}
REF = {"controllerRef": {"name": "slinky"}}
KEY = {"name": "s", "key": "k"}
ELSEWHERE = {"name": "other/site", "key": "k"}


def make(kind: str, spec: dict[str, Any], name: str = "a") -> KubeObject:
    manifest = {"metadata": {"name": name, "namespace": "slurm"}, "spec": spec}
    return msgspec.convert(manifest, TYPES[kind])


def with_strategy(**strategy: Any) -> dict[str, Any]:
    return {**REF, "updateStrategy": strategy}


def with_storage(**storage: str) -> dict[str, Any]:
    found = {"host": "db", "passwordKeyRef": KEY, **storage}
    return {"slurmKeyRef": KEY, "jwtKeyRef": KEY, "storageConfig": found}


def with_pod(**spec: Any) -> dict[str, Any]:
    return {**REF, "template": {"spec": spec}}


PARTITION = "spec.partition.config"
WRONG: list[tuple[str, dict[str, Any], str, str]] = [
    ("Controller", {"clusterName": "x" * 41}, "spec.clusterName", "41 characters"),
    ("Controller", {"external": True}, "spec.externalConfig.host", "name the host"),
    ("Controller", {"ha": {"enabled": True}}, "spec.ha", "persistence.existingClaim"),
    (
        "Controller",
        {"ha": {"enabled": True}, "persistence": {"enabled": False, "existingClaim": "c"}},
        "spec.ha",
        "persistence.existingClaim",
    ),
    ("Controller", {"configFileRefs": [{"name": ""}]}, "spec.configFileRefs", "a name"),
    (
        "Controller",
        {"prologScriptRefs": [{"name": "p"}, {"name": "p"}]},
        "spec.prologScriptRefs",
        "'p' is there 2 times",
    ),
    (
        "Controller",
        {"template": {"spec": {"hostNetwork": True}}},
        "spec.template.spec.hostNetwork",
        "not offered",
    ),
    (
        "Controller",
        {"slurmctld": {"image": {"repository": "r"}}},
        "spec.slurmctld.image",
        "one string",
    ),
    ("NodeSet", {"controllerRef": {}}, "spec.controllerRef.name", "empty"),
    (
        "NodeSet",
        {"controllerRef": {"name": "c", "namespace": "other"}},
        "spec.controllerRef.namespace",
        "nothing grants",
    ),
    ("NodeSet", {**REF, "slurmd": {"image": 5}}, "spec.slurmd.image", "one string"),
    ("NodeSet", with_pod(containers=["x"]), "spec.template.spec.containers[0]", "a mapping"),
    ("NodeSet", with_pod(hostname="Big_One"), "spec.template.spec.hostname", "not a host name"),
    ("NodeSet", with_pod(hostname="n" * 63), "metadata.name", "64 characters"),
    ("NodeSet", {**REF, "extraConf": "Weight=1 Gres"}, "spec.extraConf", "Key=Value"),
    ("NodeSet", {**REF, "extraConf": "=1"}, "spec.extraConf", "Key=Value"),
    (
        "NodeSet",
        {**REF, "partition": {"config": "A=1\nB=2"}},
        "spec.partition.config",
        "on one line",
    ),
    (
        "NodeSet",
        {**REF, "ssh": {"enabled": True, "sssdConfRef": {"key": "k"}}},
        "spec.ssh.sssdConfRef.name",
        "empty",
    ),
    (
        "NodeSet",
        {**REF, "ssh": {"extraSshdConfig": "#" * 131_073}},
        "spec.ssh.extraSshdConfig",
        "131073 characters are more than 131072",
    ),
    ("LoginSet", {**REF, "extraSshdConfig": "#" * 131_073}, "spec.extraSshdConfig", "more than"),
    (
        "LoginSet",
        {**REF, "rootSshAuthorizedKeys": "#" * 524_289},
        "spec.rootSshAuthorizedKeys",
        "more than 524288",
    ),
    *(
        (
            "Accounting",
            with_storage(**{field: "x" * 1025}),
            f"spec.storageConfig.{field}",
            "more than 1024",
        )
        for field in ("host", "database", "username")
    ),
    (
        "Token",
        {"username": "u", "jwtKeyRef": KEY, "identity": {"uid": 1, "gid": 1, "gecos": "x" * 1025}},
        "spec.identity.gecos",
        "more than 1024",
    ),
    *(
        (
            "NodeSet",
            with_strategy(rollingUpdate={"maxUnavailable": most}),
            "spec.updateStrategy.rollingUpdate.maxUnavailable",
            "no update at all",
        )
        for most in (0, -1, "0%", "00%", "many", "5")
    ),
    (
        "NodeSet",
        with_strategy(type="ScheduledUpdate"),
        "spec.updateStrategy.scheduledUpdate.startTime",
        "set a time",
    ),
    (
        "NodeSet",
        with_strategy(scheduledUpdate={"duration": "59s"}),
        "spec.updateStrategy.scheduledUpdate.duration",
        "1m at least",
    ),
    (
        "NodeSet",
        with_strategy(scheduledUpdate={"duration": "soon"}),
        "spec.updateStrategy.scheduledUpdate.duration",
        "not a duration",
    ),
    (
        "NodeSet",
        {**REF, "volumeClaimTemplates": [{"metadata": {"name": "d"}}] * 2},
        "spec.volumeClaimTemplates",
        "'d' is there 2 times",
    ),
    ("LoginSet", {**REF, "sssdConfRef": {"key": "k"}}, "spec.sssdConfRef.name", "empty"),
    ("RestApi", {"controllerRef": {"name": ""}}, "spec.controllerRef.name", "empty"),
    ("Accounting", {}, "spec.slurmKeyRef", "name the Secret"),
    ("Accounting", {"external": True}, "spec.externalConfig.host", "name the host"),
    (
        "Accounting",
        {"template": {"spec": {"hostNetwork": True}}},
        "spec.template.spec.hostNetwork",
        "not offered",
    ),
    ("Token", {"username": "u"}, "spec.jwtKeyRef", "name the Secret"),
    ("Token", {"username": "u", "jwtKeyRef": KEY, "lifetime": "x"}, "spec.lifetime", "duration"),
    (
        "Token",
        {"username": "u", "jwtKeyRef": KEY, "secretRef": {**KEY, "key": "token"}},
        "spec.secretRef.name",
        "name another Secret",
    ),
    ("Controller", {"sssdConfRef": {"key": "k"}}, "spec.sssdConfRef.name", "empty"),
    *(
        ("Controller", {field: ELSEWHERE}, f"spec.{field}.name", "of one in namespace slurm")
        for field in ("slurmKeyRef", "mungeKeyRef", "jwtKeyRef", "jwtHs256KeyRef", "jwksKeyRef")
    ),
    ("Token", {"username": "../../x", "jwtKeyRef": KEY}, "spec.username", "no Secret"),
    (
        "Token",
        {"username": "u", "jwtKeyRef": KEY, "secretRef": {"name": "../secrets/x", "key": "k"}},
        "spec.secretRef.name",
        "no Secret",
    ),
    ("Controller", {"clusterName": "../../etc"}, "spec.clusterName", "no ClusterName"),
    ("Controller", {"clusterName": "a\nB=c"}, "spec.clusterName", "no ClusterName"),
    *(
        (
            kind,
            {"external": True, "externalConfig": {"host": host}},
            "spec.externalConfig.host",
            "no host",
        )
        for kind in ("Controller", "Accounting")
        for host in ("db\nPrologSlurmctld=/tmp/x", "db SlurmUser=root", "db#", "h:6817", "a..b")
    ),
    *(
        (
            kind,
            {**REF, "service": {"spec": {"type": "ExternalName"}}},
            "spec.service.spec.type",
            "no pod",
        )
        for kind in ("Controller", "Accounting", "RestApi", "LoginSet")
    ),
    (
        "NodeSet",
        {**REF, "partition": {"enabled": True, "config": "State=UP\\"}},
        PARTITION,
        "backslash",
    ),
    (
        "NodeSet",
        {**REF, "partition": {"enabled": True, "config": "A=1\rB=2"}},
        PARTITION,
        "backslash",
    ),
    ("Accounting", {"mungeKeyRef": ELSEWHERE}, "spec.mungeKeyRef.name", "without a namespace"),
    ("Token", {"username": "u", "jwtKeyRef": ELSEWHERE}, "spec.jwtKeyRef.name", "no Secret"),
]


@pytest.mark.parametrize(("kind", "spec", "path", "words"), WRONG)
def test_an_invalid_object_gets_the_expected_value(
    kind: str, spec: dict[str, Any], path: str, words: str
):
    found = {problem.path: problem.message for problem in problems(make(kind, spec))}
    assert words in found.get(path, ""), found


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_a_fixture_has_no_problem(path: Path):
    manifest = yaml.safe_load(path.read_text())
    assert problems(msgspec.convert(manifest, TYPES[manifest["kind"]])) == []


def test_the_cluster_name_made_of_namespace_and_name_counts():
    assert problems(make("Controller", {}, name="n" * 34)) == []
    assert problems(make("Controller", {}, name="n" * 35))[0].path == "spec.clusterName"


def test_a_key_of_a_secret_with_dots_in_its_name_is_no_problem():
    ref = {"name": "site.munge-0.key", "key": "k"}
    assert problems(make("Controller", {"mungeKeyRef": ref, "jwtKeyRef": ref})) == []


def test_naming_the_own_namespace_is_no_problem():
    assert problems(make("NodeSet", {"controllerRef": {"name": "c", "namespace": "slurm"}})) == []


@pytest.mark.parametrize("kind", ["NodeSet", "LoginSet", "RestApi"])
def test_workers_and_clients_may_use_the_hosts_network(kind: str):
    assert problems(make(kind, with_pod(hostNetwork=True))) == []


def test_other_kinds_are_not_judged():
    with pytest.raises(TypeError, match="Pod"):
        problems(Pod())


OUTSIDE: dict[str, Any] = {"service": {"spec": {"externalIPs": ["192.0.2.1"]}}}
UNSERVED: list[tuple[str, dict[str, Any], str]] = [
    ("Controller", {"slurmKeyRef": {**KEY, "optional": True}}, "spec.slurmKeyRef.optional"),
    ("Controller", OUTSIDE, "spec.service.spec.externalIPs"),
    ("RestApi", {**REF, **OUTSIDE}, "spec.service.spec.externalIPs"),
    ("LoginSet", {**REF, **OUTSIDE}, "spec.service.spec.externalIPs"),
    ("LoginSet", {**REF, "sssdConfRef": {**KEY, "optional": True}}, "spec.sssdConfRef.optional"),
    (
        "NodeSet",
        {**REF, "ssh": {"enabled": True, "sssdConfRef": {**KEY, "optional": True}}},
        "spec.ssh.sssdConfRef.optional",
    ),
    ("Accounting", {"jwtKeyRef": {**KEY, "optional": True}}, "spec.jwtKeyRef.optional"),
    ("Accounting", OUTSIDE, "spec.service.spec.externalIPs"),
    ("Token", {"username": "u", "secretRef": {**KEY, "optional": True}}, "spec.secretRef.optional"),
]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("extraConf", "A=b"),
        ("persistence", {"enabled": False}),
        ("metrics", {"enabled": True}),
        ("service", {"port": 7817}),
        ("slurmctld", {"image": "a"}),
        ("prologScriptRefs", [{"name": "scripts"}]),
    ],
)
def test_what_an_external_slurmctld_cannot_be_given_is_named(field: str, value: Any):
    outside = {"external": True, "externalConfig": {"host": "h"}}
    assert unsupported_fields(make("Controller", outside)) == []
    (line,) = unsupported_fields(make("Controller", {**outside, field: value}))
    assert line.startswith(f"spec.{field}: not used, slurmctld is external")


@pytest.mark.parametrize(("kind", "spec", "path"), UNSERVED)
def test_what_is_not_served_is_named(kind: str, spec: dict[str, Any], path: str):
    (line,) = unsupported_fields(make(kind, spec))
    assert line.startswith(f"{path}: not served yet")


@pytest.mark.parametrize(
    ("kind", "container"),
    [
        ("Controller", "slurmctld"),
        ("Controller", "reconfigure"),
        ("NodeSet", "slurmd"),
        ("NodeSet", "logfile"),
        ("LoginSet", "login"),
        ("LoginSet", "initconf"),
        ("RestApi", "slurmrestd"),
        ("Accounting", "slurmdbd"),
    ],
)
def test_a_field_of_a_pod_in_a_container_is_named_with_its_place(kind: str, container: str):
    spec: dict[str, Any] = {
        **REF,
        container: {"image": "a", "volumes": [{"name": "v"}], "affinity": {}},
    }
    (line,) = unsupported_fields(make(kind, spec))
    assert line.startswith(f"spec.{container}.volumes: not used")
    assert line.endswith("move it to spec.template.spec.volumes")


@pytest.mark.parametrize("kind", ["Controller", "NodeSet", "LoginSet", "RestApi", "Accounting"])
def test_a_field_of_a_container_in_a_pod_is_named_with_its_place(kind: str):
    mounts = [{"name": "v", "mountPath": "/v"}]
    (line,) = unsupported_fields(make(kind, {**REF, **with_pod(volumeMounts=mounts, env=[])}))
    assert line.startswith("spec.template.spec.volumeMounts: not used")
    assert ".volumeMounts" in line.split("container, ")[1]
    more = with_pod(initContainers=[{"name": "i", "image": "i", "nodeSelector": {"a": "b"}}])
    (line,) = unsupported_fields(make(kind, {**REF, **more}))
    assert line.startswith("spec.template.spec.initContainers[0].nodeSelector: not used")


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        ("Controller", {"ha": {"enabled": False}, "prologScriptRefs": [{"name": "p"}]}),
        ("NodeSet", {**REF, "ssh": {"enabled": True}}),
        ("Token", {"username": "u", "jwtKeyRef": KEY}),
        ("NodeSet", {**REF, "ssh": {"enabled": False}, "volumeClaimTemplates": []}),
        ("NodeSet", with_strategy(type="OnDelete")),
        ("NodeSet", with_strategy(rollingUpdate={"maxUnavailable": 1})),
        ("LoginSet", REF),
        ("RestApi", REF),
    ],
)
def test_what_is_switched_off_is_not_named(kind: str, spec: dict[str, Any]):
    assert unsupported_fields(make(kind, spec)) == []
