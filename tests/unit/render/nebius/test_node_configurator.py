"""The DaemonSet of a NodeConfigurator."""

from __future__ import annotations

import msgspec
import pytest

from penstock.api.kubernetes.meta import Json
from penstock.api.nebius.node_configurator import NodeConfigurator
from penstock.render.nebius.node_configurator import daemon_set, declared

IMAGE = "registry.example/operator:1"


def rendered(spec: Json) -> Json:
    found = daemon_set(configurator(spec), IMAGE)
    assert found is not None
    return found


def pod(spec: Json) -> Json:
    found: Json = rendered(spec)["spec"]["template"]["spec"]
    return found


def configurator(spec: Json) -> NodeConfigurator:
    meta = {"name": "slurm-rebooter", "namespace": "slurm", "uid": "u"}
    return msgspec.convert({"metadata": meta, "spec": spec}, NodeConfigurator)


CUSTOM = {"enabled": True, "image": {"repository": "r.example/tool", "tag": "1"}}


def test_it_has_the_names_and_labels_of_the_original():
    """S092."""
    found = rendered({})
    meta = found["metadata"]
    assert (meta["name"], meta["namespace"]) == ("slurm-rebooter-ds", "slurm")
    selector = {
        "app.kubernetes.io/name": "slurmcluster",
        "app.kubernetes.io/instance": "slurm-rebooter",
        "app.kubernetes.io/component": "node-configurator",
        "slurm.nebius.ai/node-configurator": "true",
    }
    assert found["spec"]["selector"] == {"matchLabels": selector}
    every = selector | {
        "app.kubernetes.io/part-of": "slurm-operator",
        "app.kubernetes.io/managed-by": "slurm-operator",
    }
    assert meta["labels"] == found["spec"]["template"]["metadata"]["labels"] == every
    assert meta["ownerReferences"][0]["controller"]
    strategy = found["spec"]["updateStrategy"]
    assert strategy == {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "20%"}}


def test_the_rebooter_has_the_published_command_line_and_variables():
    found = pod({"rebooter": {"enabled": True, "logLevel": "debug", "logFormat": "json"}})
    (container,) = found["containers"]
    assert container["name"] == "rebooter"
    assert container["image"] == IMAGE
    assert container["command"] == ["/usr/bin/rebooter"]
    assert container["args"] == ["-log-level=debug", "-log-format=json"]
    assert [one["name"] for one in container["env"]] == [
        "REBOOTER_EVICTION_METHOD",
        "REBOOTER_NODE_NAME",
    ]
    assert container["securityContext"]["privileged"]
    assert found["hostPID"]
    assert found["hostNetwork"]


def test_a_variable_of_the_user_does_not_replace_the_name_of_the_node():
    env = [{"name": "REBOOTER_NODE_NAME", "value": "other"}, {"name": "MORE", "value": "1"}]
    (container,) = pod({"rebooter": {"enabled": True, "env": env}})["containers"]
    values = {one["name"]: one for one in container["env"]}
    assert "value" not in values["REBOOTER_NODE_NAME"]
    assert values["MORE"]["value"] == "1"


def test_a_container_of_the_user_has_no_rights_and_no_token():
    found = pod({"rebooter": {"enabled": False}, "customContainer": CUSTOM, "hostNetwork": False})
    (container,) = found["containers"]
    assert container["name"] == "custom-container"
    assert container["image"] == "r.example/tool:1"
    assert container["securityContext"]["runAsNonRoot"]
    assert "privileged" not in container["securityContext"]
    assert found["automountServiceAccountToken"] is False
    assert not {"hostPID", "hostNetwork", "hostIPC"} & found.keys()


@pytest.mark.parametrize("field", ["rebooter", "customContainer"])
def test_each_declared_field_reaches_the_pod(field: str):
    probe = {"exec": {"command": ["true"]}}
    given: Json = {
        "enabled": True,
        "name": "mine",
        "image": {"repository": "r.example/x", "tag": "2", "pullPolicy": "Always"},
        "command": ["/run"],
        "env": [{"name": "A", "value": "b"}],
        "resources": {"limits": {"memory": "1Gi", "cpu": "2"}, "requests": {"memory": "1Gi"}},
        "livenessProbe": probe,
        "readinessProbe": probe,
        "nodeSelector": {"pool": "gpu"},
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"a": 1}}},
        "tolerations": [{"operator": "Exists"}],
        "priorityClassName": "high",
        "serviceAccountName": "account",
        "hostUsers": False,
    }
    spec: Json = {"rebooter": {"enabled": False}, field: given, "hostIPC": True}
    spec |= {"shareProcessNamespace": True, "initContainers": [{"name": "first", "image": "i"}]}
    found = pod(spec)
    (container,) = found["containers"]
    assert container["image"] == "r.example/x:2"
    assert container["imagePullPolicy"] == "Always"
    assert container["resources"] == given["resources"]
    assert container["livenessProbe"] == container["readinessProbe"] == probe
    assert {"name": "A", "value": "b"} in container["env"]
    assert found["nodeSelector"] == given["nodeSelector"]
    assert found["affinity"] == given["affinity"]
    assert found["tolerations"] == given["tolerations"]
    assert found["priorityClassName"] == "high"
    assert found["serviceAccountName"] == "account"
    assert found["hostUsers"] is False
    assert found["hostIPC"]
    assert found["shareProcessNamespace"]
    assert found["initContainers"] == spec["initContainers"]
    if field == "customContainer":
        assert (container["name"], container["command"]) == ("mine", ["/run"])


def test_the_older_field_of_a_container_of_the_user_is_read():
    found = pod({"rebooter": {"enabled": False}, "nodeConfigurator": CUSTOM})
    assert found["containers"][0]["image"] == "r.example/tool:1"


def test_the_rebooter_wins_where_both_are_enabled():
    found = pod({"rebooter": {"enabled": True}, "customContainer": CUSTOM})
    assert [one["name"] for one in found["containers"]] == ["rebooter"]


def test_there_is_none_while_both_are_off():
    off = configurator({"rebooter": {"enabled": False}})
    assert daemon_set(off, IMAGE) is None


def test_an_adopted_daemon_set_is_the_same_until_the_spec_changes():
    image = {"repository": "r.example/rebooter", "tag": "5.0.0"}
    one = configurator({"rebooter": {"enabled": True, "image": image}})
    found = declared(one)
    assert found.images == {"rebooter": "r.example/rebooter:5.0.0"}
    other = configurator({"rebooter": {"enabled": True, "image": image, "logLevel": "debug"}})
    assert declared(other).note != found.note
