"""sssd beside slurmctld, logins and workers: sidecar, volumes, mounts and the default Secret."""

from __future__ import annotations

import base64
from typing import Any, cast

import pytest

from penstock.api.kubernetes.meta import Json
from penstock.api.nebius.nodeset import NodeSet
from penstock.api.nebius.slurmcluster import SlurmCluster
from penstock.api.nebius.sssd import cluster_sssd, node_set_sssd
from penstock.render.nebius import sssd
from penstock.render.parts.script import script
from support import nebius
from support.nebius_clusters import CURRENT, WITHOUT_JAIL, of_shape

CONTROLLER, LOGIN = "spec.slurmNodes.controller", "spec.slurmNodes.login"
GIVEN = {"image": "registry.example/sssd:1"}
WORKERS = {"spec.sssd": {"image": {"repository": "registry.example/sssd"}, "resources": {}}}
PIPES = "/var/lib/sss/pipes"


def cluster_changes(**more: Any) -> dict[str, Any]:
    """Changes that declare sssd for slurmctld and logins, with further fields of both."""
    fields = {"sssd": GIVEN, **more}
    return {f"{path}.{name}": one for path in (CONTROLLER, LOGIN) for name, one in fields.items()}


def pods(changes: dict[str, Any], node_set: dict[str, Any]) -> dict[str, Json]:
    """Pod specs by the main container."""
    found = of_shape(CURRENT, changes, node_set)
    every = [
        *(
            one["spec"]["template"]["spec"]
            for one in found.objects()
            if one["kind"] == "StatefulSet"
        ),
        found.pod()["spec"],
    ]
    return {one["containers"][0]["name"]: one for one in every}


def sidecar(spec: Json) -> Json:
    return next(one for one in spec["initContainers"] if one["name"] == "sssd")


def mounts(container: Json) -> dict[str, tuple[str, bool]]:
    """Volume and whether it is read-only, by path."""
    return {
        one["mountPath"]: (one["name"], one.get("readOnly", False))
        for one in container["volumeMounts"]
    }


def volume(spec: Json, name: str) -> Json:
    return next(one for one in spec["volumes"] if one["name"] == name)


def names(spec: Json) -> list[str]:
    return [one["name"] for one in spec["initContainers"]]


def test_it_starts_after_munge_and_outlives_its_end():
    found = pods({**cluster_changes(), f"{CONTROLLER}.customInitContainers": []}, WORKERS)
    assert names(found["slurmctld"]) == ["munge", "sssd", "reconfigure"]
    assert names(found["sshd"])[-2:] == ["munge", "sssd"]
    assert names(found["slurmd"])[-2:] == ["munge", "sssd"]
    for spec in found.values():
        assert sidecar(spec)["restartPolicy"] == "Always"


def test_without_the_field_a_pod_has_nothing_of_it():
    for spec in pods({}, {"spec.sssdDebugLevel": 7}).values():
        assert "sssd" not in names(spec)
        assert not [one for one in spec["volumes"] if "sssd" in one["name"]]
        assert PIPES not in mounts(spec["containers"][0])


def test_the_operators_command_has_the_debug_level_and_the_users_own_replaces_it():
    found = pods(cluster_changes(sssdDebugLevel=4), {**WORKERS, "spec.sssdDebugLevel": 9})
    assert sidecar(found["sshd"])["command"] == [
        *("/bin/sh", "-c", script("sssd_sidecar"), "sssd", "4"),
    ]
    assert sidecar(found["slurmd"])["command"][-1] == "9"
    own = {**GIVEN, "command": ["/mine"], "args": ["-x"]}
    one = sidecar(pods(cluster_changes(sssd=own), {})["slurmctld"])
    assert (one["command"], one["args"]) == (["/mine"], ["-x"])
    only = sidecar(pods(cluster_changes(sssd={**GIVEN, "args": ["-x"]}), {})["slurmctld"])
    assert "command" not in only


def test_declared_probes_resources_and_variables_are_those_of_the_sidecar():
    probe = {"exec": {"command": ["true"]}}
    given = {
        **GIVEN,
        "livenessProbe": probe,
        "readinessProbe": probe,
        "resources": {"cpu": "200m", "memory": "500Mi"},
        "customEnv": [{"name": "A", "value": "b"}],
        "imagePullPolicy": "Always",
        "imagePullSecrets": [{"name": "registry"}],
    }
    spec = pods(cluster_changes(sssd=given), {})["sshd"]
    one = sidecar(spec)
    assert (one["livenessProbe"], one["readinessProbe"]) == (probe, probe)
    assert one["resources"] == {
        "requests": {"cpu": "200m", "memory": "500Mi"},
        "limits": {"memory": "500Mi"},
    }
    assert (one["env"], one["imagePullPolicy"]) == ([{"name": "A", "value": "b"}], "Always")
    assert {"name": "registry"} in spec["imagePullSecrets"]
    assert "capabilities" not in one["securityContext"]


def test_sockets_are_the_sidecars_and_read_only_for_all_others():
    found = pods(cluster_changes(), WORKERS)
    for name, spec in found.items():
        assert volume(spec, "sssd-socket")["emptyDir"] == {}
        assert mounts(sidecar(spec))[PIPES] == ("sssd-socket", False)
        main = mounts(spec["containers"][0])
        assert main[PIPES] == ("sssd-socket", True), name
        assert main["/etc/sssd"] == ("sssd-conf", True)
    reconfigure = found["slurmctld"]["initContainers"][-1]
    assert mounts(reconfigure)[PIPES] == ("sssd-socket", True)
    assert "/etc/sssd" not in mounts(reconfigure)


def test_without_a_jail_only_the_sidecar_has_the_password():
    spec = pods({**WITHOUT_JAIL, **cluster_changes()}, {})["sshd"]
    main = mounts(spec["containers"][0])
    assert PIPES in main
    assert "/etc/sssd" not in main
    assert "/etc/sssd" in mounts(sidecar(spec))


@pytest.mark.parametrize("main", ["slurmctld", "sshd"])
def test_the_conf_is_the_clusters_secret_unless_one_is_named(main: str):
    def source(**more: Any) -> Json:
        return volume(pods(cluster_changes(**more), {})[main], "sssd-conf")["secret"]

    found = source()
    assert found["secretName"] == "soperator-sssd-conf"
    assert found["items"] == [{"key": "sssd.conf", "path": "sssd.conf", "mode": 0o600}]
    assert found["optional"] is True
    assert source(sssdConfSecretRefName="company")["secretName"] == "company"


def test_workers_have_a_secret_of_their_node_set():
    found = of_shape(CURRENT, {}, WORKERS)
    name = found.inputs.node_sets[0].metadata.name
    secret = volume(found.pod()["spec"], "sssd-conf")["secret"]["secretName"]
    assert secret == f"soperator-nodeset-{name}-sssd-conf"
    given = {**WORKERS, "spec.sssdConfSecretRefName": "company"}
    spec = of_shape(CURRENT, {}, given).pod()["spec"]
    assert volume(spec, "sssd-conf")["secret"]["secretName"] == "company"


def test_certificates_are_the_sidecars_alone():
    given = {"sssdLdapCAConfigMapRefName": "company-ca"}
    of_set = {**WORKERS, "spec.sssdLdapCAConfigMapRefName": "company-ca"}
    for spec in pods(cluster_changes(**given), of_set).values():
        found = volume(spec, "sssd-ldap-ca")["configMap"]
        assert (found["name"], found["optional"]) == ("company-ca", True)
        assert mounts(sidecar(spec))["/mnt/ldapCA"] == ("sssd-ldap-ca", True)
        assert "/mnt/ldapCA" not in mounts(spec["containers"][0])


def test_the_default_secret_has_no_directory():
    cluster = cast("SlurmCluster", nebius.made("slurmcluster-5.0-0", cluster_changes()))
    (name,) = {one.secret for one in cluster_sssd(cluster)}
    made = sssd.default_secret(cluster, cluster.metadata.name, name)
    assert made["metadata"]["name"] == "soperator-sssd-conf"
    text = base64.b64decode(made["data"]["sssd.conf"]).decode()
    assert "enable_files_domain = true" in text
    assert "[domain/" not in text
    node_set = cast("NodeSet", nebius.made("nodesets-5.0-0", WORKERS))
    files = node_set_sssd(node_set)
    assert files is not None
    owner = sssd.default_secret(node_set, "soperator", files.secret)["metadata"]["ownerReferences"]
    assert owner[0]["kind"] == "NodeSet"


def test_a_node_set_without_sssd_keeps_its_template_whatever_its_other_fields():
    """A newer operator replaces no worker, and none is replaced for a field without effect."""
    plain = of_shape(CURRENT).revision_hash()
    fields = {
        "spec.sssdDebugLevel": 5,
        "spec.sssdConfSecretRefName": "company",
        "spec.sssdLdapCAConfigMapRefName": "company-ca",
    }
    assert of_shape(CURRENT, {}, fields).revision_hash() == plain
    hashes = {
        of_shape(CURRENT, {}, {**WORKERS, name: one}).revision_hash()
        for name, one in fields.items()
    }
    assert len({plain, of_shape(CURRENT, {}, WORKERS).revision_hash(), *hashes}) == 5


def test_two_clusters_of_a_namespace_have_files_of_their_own():
    changes = {**cluster_changes(), "metadata.name": "second"}
    other = cast("SlurmCluster", nebius.made("slurmcluster-5.0-0", changes))
    first = cast("SlurmCluster", nebius.made("slurmcluster-5.0-0", cluster_changes()))
    assert {one.secret for one in cluster_sssd(first)} == {"soperator-sssd-conf"}
    assert {one.secret for one in cluster_sssd(other)} == {"second-sssd-conf"}
    of_set = cast(
        "NodeSet", nebius.made("nodesets-5.0-0", {**WORKERS, "spec.clusterName": "second"})
    )
    files = node_set_sssd(of_set)
    assert files is not None
    assert files.secret == f"second-nodeset-{of_set.metadata.name}-sssd-conf"
