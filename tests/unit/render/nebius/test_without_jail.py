"""Manifests of a SlurmCluster whose jobs and sessions have the root of their container."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import pytest

from penstock.api.nebius import names
from penstock.render.nebius.config.inputs import ConfigInputs
from penstock.render.nebius.config.plugstack_conf import plugstack_conf
from penstock.render.parts.digest import canonical_json
from support.nebius_clusters import SHAPES, Rendered, of_shape, without_jail

pytestmark = pytest.mark.parametrize("shape", SHAPES)
DAEMONS = {"slurmctld", "reconfigure", "sshd", "slurmd"}
"""Containers that read Slurm's configuration in /etc/slurm, a link to /mnt/jail/etc/slurm."""


def pod_specs(found: Rendered) -> Iterator[dict[str, Any]]:
    for one in found.objects():
        if one["kind"] == "Pod":
            yield one["spec"]
        elif "template" in one.get("spec", {}):
            yield one["spec"]["template"]["spec"]


def containers(found: Rendered) -> dict[str, dict[str, Any]]:
    return {
        one["name"]: one
        for spec in pod_specs(found)
        for one in (*spec.get("initContainers", ()), *spec["containers"])
    }


def mounts(container: dict[str, Any]) -> dict[str, str]:
    return {one["mountPath"]: one["name"] for one in container["volumeMounts"]}


def test_no_object_of_a_jail_is_rendered(shape: str):
    found = without_jail(shape)
    kept = {(one["kind"], one["metadata"]["name"]) for one in found.objects()}
    usual = {(one["kind"], one["metadata"]["name"]) for one in of_shape(shape).objects()}
    gone = {name for kind, name in usual - kept if kind not in ("Pod", "ControllerRevision")}
    assert kept <= usual | {one for one in kept if one[0] == "ControllerRevision"}
    assert all("sconfigcontroller" in one or "populate-jail" in one for one in gone)
    assert any("sconfigcontroller" in one for one in gone)


def test_each_daemon_mounts_the_files_in_force_at_the_path_of_the_images(shape: str):
    found = without_jail(shape)
    by_name = containers(found)
    assert by_name.keys() >= DAEMONS
    for name in DAEMONS:
        assert mounts(by_name[name])["/mnt/jail/etc/slurm"] == "slurm-etc", name
        assert not {"/mnt/jail", "/mnt/jail.upper"} & mounts(by_name[name]).keys(), name
    for spec in pod_specs(found):
        for one in spec.get("volumes", ()):
            if one["name"] == "slurm-etc":
                source = one["projected"]["sources"][0]["configMap"]
                assert source == {"name": names.slurm_configs(found.inputs.name)}
            # A user's volume of the name of the jail would be another thing.
            assert one["name"] != names.JAIL


def test_nothing_is_mounted_into_a_jail_and_users_find_it_at_its_path(shape: str):
    found = without_jail(shape)
    assert b"jail.upper" not in canonical_json(list(pod_specs(found)))
    assert mounts(containers(found)["sshd"])["/mnt/memory"] == "in-memory"


def test_entry_points_learn_it_and_logins_need_no_privilege(shape: str):
    by_name = containers(without_jail(shape))
    for name in DAEMONS - {"reconfigure"}:
        assert {"name": "JAIL_MODE", "value": "None"} in by_name[name]["env"], name
        assert "seccompProfile" not in by_name[name].get("securityContext", {}), name
    assert "capabilities" not in by_name["sshd"].get("securityContext", {})
    shared = containers(of_shape(shape))
    assert all("JAIL_MODE" not in str(one.get("env")) for one in shared.values())


def test_the_kubelets_folder_is_tried_and_not_a_shared_one(shape: str):
    def script(found: Rendered) -> str:
        return containers(found)["reconfigure"]["command"][-1]

    assert ".penstock-files" in script(of_shape(shape))
    assert ".penstock-files" not in script(without_jail(shape))


def test_slurm_and_sshd_enter_no_jail(shape: str):
    found, shared = without_jail(shape), of_shape(shape)
    for one, is_in in ((found, False), (shared, True)):
        inputs = ConfigInputs(cluster=one.inputs.cluster, node_sets=one.inputs.node_sets)
        assert ("chroot.so" in plugstack_conf(inputs)) == is_in
        maps = [each for each in one.objects() if each["kind"] == "ConfigMap"]
        texts = [
            cast("str", each["data"]["sshd_config"])
            for each in maps
            if "sshd_config" in each.get("data", ())
        ]
        assert texts
        for text in texts:
            assert ("/mnt/jail" in text) == is_in
            assert "PermitRootLogin yes" in text
