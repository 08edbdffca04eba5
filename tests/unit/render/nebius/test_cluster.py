"""Daemons of a SlurmCluster: the containers, names and mounts that users and scripts know."""

from __future__ import annotations

import base64
from typing import Any

import msgspec
import pytest

from penstock.api.kubernetes.meta import Json
from penstock.api.nebius.cluster_validation import cluster_problems
from penstock.api.nebius.slurmcluster import SlurmCluster
from penstock.controllers.jailed_config import process
from penstock.render.nebius.cluster import populate_jail, secrets, services
from support import nebius
from support.nebius_clusters import CURRENT, OLDER, SHAPES, Rendered, of_shape

WORKLOADS = ("StatefulSet", "Deployment", "Job")
CONTROLLER, LOGIN = "spec.slurmNodes.controller", "spec.slurmNodes.login"
SCRATCH = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


def prefix(shape: str) -> str:
    return "soperator-" if shape == CURRENT else ""


def pod_spec(found: Rendered, kind: str, name: str) -> Json:
    return found.find(kind, name)["spec"]["template"]["spec"]


def names(containers: list[Json]) -> list[str]:
    return [one["name"] for one in containers]


def container(spec: Json, name: str) -> Json:
    every = (*spec.get("initContainers", ()), *spec["containers"])
    return next(one for one in every if one["name"] == name)


def mounted(spec: Json, name: str) -> dict[str, str]:
    """Names of volumes by path."""
    return {one["mountPath"]: one["name"] for one in container(spec, name)["volumeMounts"]}


def environment(spec: Json, name: str) -> dict[str, str]:
    return {one["name"]: one.get("value", "") for one in container(spec, name).get("env", ())}


@pytest.mark.parametrize("shape", SHAPES)
def test_each_pod_has_the_containers_that_scripts_name(shape: str):
    """S088."""
    found, start = of_shape(shape, {f"{CONTROLLER}.customInitContainers": []}), prefix(shape)
    cluster = found.inputs.name
    for kind, name, init, main in (
        ("StatefulSet", f"{start}controller", ["munge", "reconfigure"], "slurmctld"),
        ("StatefulSet", f"{start}login", ["munge"], "sshd"),
        ("Deployment", f"{start}rest", [], "slurmrestd"),
        ("Deployment", f"{start}sconfigcontroller", ["init-dir"], "sconfigctrl"),
        ("Job", f"{cluster}-populate-jail", [], "populate-jail"),
    ):
        spec = pod_spec(found, kind, name)
        assert names(spec.get("initContainers", [])) == init
        assert names(spec["containers"]) == [main]
    worker = found.pod()["spec"]
    assert (names(worker["initContainers"]), names(worker["containers"])) == (["munge"], ["slurmd"])


@pytest.mark.parametrize("shape", SHAPES)
def test_logs_and_exec_without_a_name_reach_the_daemon(shape: str):
    found = of_shape(shape)
    templates = [one["spec"]["template"] for one in found.objects() if one["kind"] in WORKLOADS]
    for one in (*templates, found.pod()):
        marked = one["metadata"]["annotations"]["kubectl.kubernetes.io/default-container"]
        assert marked == one["spec"]["containers"][0]["name"]


@pytest.mark.parametrize("shape", SHAPES)
def test_custom_init_containers_come_first(shape: str):
    first = [{"name": "first", "image": "i"}]
    node = "spec.slurmNodes.worker" if shape == OLDER else "spec.slurmNodes.rest"
    changes = {
        f"{path}.customInitContainers": first
        for path in (
            CONTROLLER,
            LOGIN,
            "spec.slurmNodes.rest",
            "spec.slurmNodes.accounting",
            "spec.slurmNodes.exporter",
            "spec.sConfigController.node",
            node,
        )
    }
    found = of_shape(shape, changes, {"spec.customInitContainers": first})
    pods = [
        one["spec"]["template"]["spec"]
        for one in found.objects()
        if one["kind"] in ("StatefulSet", "Deployment")
    ]
    for spec in (*pods, found.pod()["spec"]):
        assert spec["initContainers"][0] == first[0]


def test_munge_of_each_daemon_has_its_own_image():
    """S107."""
    paths = (
        f"{CONTROLLER}.munge.image",
        f"{LOGIN}.munge.image",
        "spec.slurmNodes.worker.munge.image",
    )
    found = of_shape(OLDER, {path: f"registry.example/{path}" for path in paths})
    pods = [pod_spec(found, "StatefulSet", name) for name in ("controller", "login")]
    pods.append(found.pod()["spec"])
    assert [container(one, "munge")["image"] for one in pods] == [
        f"registry.example/{path}" for path in paths
    ]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_sidecar_starts_before_the_daemon_and_outlives_its_end(shape: str):
    spec = pod_spec(of_shape(shape), "StatefulSet", f"{prefix(shape)}controller")
    for name in ("munge", "reconfigure"):
        assert container(spec, name)["restartPolicy"] == "Always"
    assert container(spec, "munge")["startupProbe"]["exec"]["command"][-1].startswith("munge -n")


@pytest.mark.parametrize("shape", SHAPES)
def test_the_sidecar_tries_candidates_with_the_image_of_slurmctld(shape: str):
    found = of_shape(shape)
    spec, cluster = pod_spec(found, "StatefulSet", f"{prefix(shape)}controller"), found.inputs.name
    sidecar = container(spec, "reconfigure")
    assert sidecar["image"] == container(spec, "slurmctld")["image"]
    assert mounted(spec, "reconfigure")["/mnt/candidate"] == "slurm-candidate"
    assert mounted(spec, "reconfigure")["/var/spool/slurmctld"] == "trial-spool"
    volume = next(one for one in spec["volumes"] if one["name"] == "slurm-candidate")
    source = volume["projected"]["sources"][0]["configMap"]
    assert source == {"name": f"{cluster}-slurm-configs-candidate", "optional": True}
    assert "slurm-candidate" not in mounted(spec, "slurmctld").values()


def test_no_container_of_a_cluster_is_privileged():
    """D65."""
    for shape in SHAPES:
        found = of_shape(shape)
        templates = [o["spec"]["template"] for o in found.objects() if o["kind"] in WORKLOADS]
        for one in (*templates, found.pod()):
            for each in (*one["spec"].get("initContainers", ()), *one["spec"]["containers"]):
                assert not each.get("securityContext", {}).get("privileged")


@pytest.mark.parametrize(
    ("profile", "expected"),
    [
        ("", None),
        ("unconfined", {"type": "Unconfined"}),
        ("runtime/default", {"type": "RuntimeDefault"}),
        ("localhost/jail", {"type": "Localhost", "localhostProfile": "jail"}),
        ("jail", {"type": "Localhost", "localhostProfile": "jail"}),
    ],
)
def test_an_app_armor_profile_is_that_of_kubernetes(profile: str, expected: Json | None):
    found = of_shape(CURRENT, {f"{LOGIN}.sshd.appArmorProfile": profile})
    sshd = container(pod_spec(found, "StatefulSet", "soperator-login"), "sshd")
    assert sshd["securityContext"].get("appArmorProfile") == expected


def test_limits_are_the_requests_without_cpu():
    sshd = container(pod_spec(of_shape(CURRENT), "StatefulSet", "soperator-login"), "sshd")
    requests = sshd["resources"]["requests"]
    assert set(requests) == {"cpu", "memory", "ephemeral-storage"}
    assert sshd["resources"]["limits"] == {k: v for k, v in requests.items() if k != "cpu"}


def test_a_declared_variable_replaces_one_of_the_operator():
    env = [{"name": "SLURM_CLUSTER_WITH_GPU", "value": "maybe"}, {"name": "X", "value": "1"}]
    found = of_shape(CURRENT, {f"{LOGIN}.sshd.customEnv": env})
    spec = pod_spec(found, "StatefulSet", "soperator-login")
    assert container(spec, "sshd")["env"] == env


def test_command_and_arguments_of_slurmctld_are_the_declared_ones():
    """D64."""
    changes = {f"{CONTROLLER}.slurmctld.{name}": [name] for name in ("command", "args")}
    spec = pod_spec(of_shape(CURRENT, changes), "StatefulSet", "soperator-controller")
    assert container(spec, "slurmctld")["command"] == ["command"]
    assert container(spec, "slurmctld")["args"] == ["args"]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_claim_template_of_the_spool_is_a_pvc_of_slurmctld(shape: str):
    changes = {f"{CONTROLLER}.volumes.spool": {"volumeClaimTemplateSpec": SCRATCH}}
    found = of_shape(shape, changes)
    made = found.find("StatefulSet", f"{prefix(shape)}controller")["spec"]
    template = made["volumeClaimTemplates"][0]
    assert (template["metadata"]["name"], template["spec"]) == ("controller-spool", SCRATCH)
    assert "controller-spool" not in names(made["template"]["spec"]["volumes"])
    assert mounted(made["template"]["spec"], "slurmctld")["/var/spool/slurmctld"] == (
        "controller-spool"
    )


def test_volumes_of_the_jail_are_mounted_where_the_entry_point_finds_them():
    """S104: the jail's own on `/` changes nothing."""
    mounts = [
        {"name": "jail", "mountPath": "/", "volumeSourceName": "jail"},
        {"name": "data", "mountPath": "/mnt/data/", "volumeSourceName": "jail", "subPath": "d"},
        {"name": "own", "mountPath": "cache", "volumeClaimTemplateSpec": SCRATCH},
    ]
    found = of_shape(CURRENT, {f"{LOGIN}.volumes.jailSubMounts": mounts})
    made = found.find("StatefulSet", "soperator-login")["spec"]
    paths = mounted(made["template"]["spec"], "sshd")
    assert paths["/mnt/jail"] == "jail"
    assert paths["/mnt/jail.upper/mnt/data"] == "jail"
    assert paths["/mnt/jail.upper/cache"] == "own"
    assert "/mnt/jail.upper" not in paths
    assert names(made["template"]["spec"]["volumes"]).count("jail") == 1
    assert [one["metadata"]["name"] for one in made["volumeClaimTemplates"]] == ["own"]


def test_a_mount_of_the_user_replaces_one_at_the_same_path():
    mounts = [{"name": "own", "mountPath": "/tmp", "volumeSourceName": "jail"}]
    found = of_shape(CURRENT, {f"{LOGIN}.volumes.customMounts": mounts})
    spec = pod_spec(found, "StatefulSet", "soperator-login")
    paths = [one["mountPath"] for one in container(spec, "sshd")["volumeMounts"]]
    assert paths.count("/tmp") == 1
    assert mounted(spec, "sshd")["/tmp"] == "jail"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (
            {"sshdServiceType": "NodePort", "sshdServiceNodePort": 30022},
            {"type": "NodePort", "ports": 30022},
        ),
        ({"sshdServiceType": "NodePort", "sshdServiceNodePort": 0}, {"type": "NodePort"}),
        (
            {
                "sshdServiceType": "LoadBalancer",
                "sshdServiceLoadBalancerIP": "192.0.2.1",
                "sshdServiceLoadBalancerSourceRanges": ["192.0.2.0/24"],
            },
            {
                "type": "LoadBalancer",
                "loadBalancerIP": "192.0.2.1",
                "loadBalancerSourceRanges": ["192.0.2.0/24"],
            },
        ),
    ],
)
def test_the_login_service_is_of_the_declared_type(changes: Json, expected: Json):
    whole = {f"{LOGIN}.{name}": value for name, value in changes.items()}
    whole[f"{LOGIN}.sshdServiceAnnotations"] = {"a": "b"}
    made = services.login(of_shape(CURRENT, whole).inputs)
    found = {k: v for k, v in made["spec"].items() if k not in ("selector", "ports")}
    if port := made["spec"]["ports"][0].get("nodePort"):
        found["ports"] = port
    assert found == expected
    assert made["metadata"]["annotations"] == {"a": "b"}


def test_the_name_of_slurmctld_leads_to_a_pod_that_is_not_ready():
    made = services.controller(of_shape(CURRENT).inputs)
    assert made["spec"]["publishNotReadyAddresses"] is True


def test_node_sets_with_several_ports_share_one_service():
    found = of_shape(CURRENT, node_set={"spec.slurmd.port": 7000})
    made = next(one for one in services.workers(found.inputs))
    assert [(one["name"], one["port"]) for one in made["spec"]["ports"]] == [
        ("slurmd-6818", 6818),
        ("slurmd-7000", 7000),
    ]


@pytest.mark.parametrize(("enabled", "named"), [(True, True), (True, False), (False, False)])
def test_slurmrestd_always_runs_without_an_image_by_ours(*, enabled: bool, named: bool):
    changes: dict[str, Any] = {"spec.slurmNodes.rest.enabled": enabled}
    if not named:
        changes |= {f"spec.slurmNodes.rest.{name}": nebius.ABSENT for name in ("rest", "size")}
    if not enabled:
        changes["spec.slurmNodes.rest.k8sNodeFilterName"] = ""
    found = of_shape(CURRENT, changes)
    assert not list(cluster_problems(found.inputs.cluster))
    made = found.find("Deployment", "soperator-rest")["spec"]
    spec = made["template"]["spec"]
    slurmrestd = spec["containers"][0]
    assert made["replicas"] == 1
    assert spec["nodeSelector"] == {"nebius.com/node-group-id": "node-group-id-here"}
    if named:
        assert set(mounted(spec, "slurmrestd")) == {"/mnt/slurm-configs", "/mnt/jail"}
    else:
        assert slurmrestd["image"] == "penstock/slurmrestd"
        assert environment(spec, "slurmrestd")["SLURM_CONF"] == "/etc/slurm/slurm_rest.conf"
        assert slurmrestd["args"][-1] == "0.0.0.0:6820"
        assert names(spec["volumes"]) == ["slurm-configs"]


def test_the_config_writer_has_rights_of_its_own_unless_the_user_names_an_account():
    kinds = [one["kind"] for one in of_shape(CURRENT).objects()]
    assert "Role" not in kinds
    own = of_shape(CURRENT, {"spec.sConfigController.serviceAccountName": ""})
    spec = pod_spec(own, "Deployment", "soperator-sconfigcontroller")
    binding = own.find("RoleBinding", "soperator-sconfigcontroller-configmaps-role-binding")
    assert binding["subjects"][0]["name"] == spec["serviceAccountName"]


@pytest.mark.parametrize("image", ["", "registry.example/sconfigcontroller"])
def test_our_config_writer_reads_no_secret_but_the_key_of_slurmrestd(image: str):
    found = of_shape(OLDER, {"spec.sConfigController.container.image": image})
    role = found.find("Role", "correct-cpu-cluster-sconfigcontroller-configmaps-role")
    secret = next(one for one in role["rules"] if one["resources"] == ["secrets"])
    own = (["get"], ["correct-cpu-cluster-rest-jwt-key"])
    assert (secret["verbs"], secret.get("resourceNames")) == (
        (["get", "list", "watch"], None) if image else own
    )
    writer = pod_spec(found, "Deployment", "sconfigcontroller")["containers"][0]
    assert writer["image"] == (image or "penstock/operator")
    assert writer["command"] == ["/usr/bin/sconfigcontroller"]


def test_our_config_writer_has_the_rights_that_its_process_names_and_no_other():
    found = of_shape(OLDER, {"spec.sConfigController.container.image": ""})
    role = found.find("Role", "correct-cpu-cluster-sconfigcontroller-configmaps-role")
    rights = {one["resources"][0]: " ".join(one["verbs"]) for one in role["rules"]}
    assert rights == {
        "configmaps": "get list watch",
        "secrets": "get",
        "jailedconfigs": "get list watch",
        "jailedconfigs/status": "patch",
        "leases": "get create patch",
        "events": "create patch",
    }
    assert all(len(one["apiGroups"]) == 1 for one in role["rules"])
    documented = (process.__doc__ or "").split()
    assert all(f"[{resource}]" in documented for resource in rights)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_scaled_down_cluster_has_no_pods(shape: str):
    found = of_shape(shape, scaled_down=True).objects()
    kinds = ("StatefulSet", "Deployment")
    assert {one["spec"]["replicas"] for one in found if one["kind"] in kinds} == {0}


def test_key_secrets_have_the_keys_that_pods_mount():
    cluster = msgspec.convert(nebius.manifest(f"slurmcluster-{CURRENT}-0"), SlurmCluster)
    munge = secrets.munge_secret(cluster, secrets.munge_key())
    jwt = secrets.jwt_secret(cluster, secrets.jwt_key())
    assert len(base64.b64decode(munge["data"]["munge.key"])) == 1024
    assert len(base64.b64decode(jwt["data"]["rest_jwt.key"])) == 64
    assert secrets.munge_key() != secrets.munge_key()


def test_host_keys_of_the_user_are_mounted_by_their_name():
    found = of_shape(CURRENT, {"spec.secrets.sshdKeysName": "mine"})
    for spec in (pod_spec(found, "StatefulSet", "soperator-login"), found.pod()["spec"]):
        volume = next(one for one in spec["volumes"] if one["name"] == "sshd-keys")
        assert volume["secret"]["secretName"] == "mine"


@pytest.mark.parametrize("overwrite", [True, False])
def test_the_job_replaces_files_of_a_filled_jail_only_on_request(*, overwrite: bool):
    changes = {"spec.populateJail.jailSnapshotVolume": {"volumeSourceName": "controller-spool"}}
    made = populate_jail.job(of_shape(CURRENT, changes).inputs, overwrite=overwrite)
    spec = made["spec"]["template"]["spec"]
    assert environment(spec, "populate-jail")["OVERWRITE"] == ("1" if overwrite else "0")
    assert mounted(spec, "populate-jail") == {"/mnt/jail": "jail", "/jail": "jail-snapshot"}
    assert spec["restartPolicy"] == "Never"


def test_the_template_of_the_job_changes_with_its_declaration_only():
    def value(changes: dict[str, Any]) -> str:
        return populate_jail.template_hash(of_shape(CURRENT, changes).inputs.cluster)

    usual = value({})
    assert value({"spec.populateJail.overwrite": True}) == usual
    assert value({f"{LOGIN}.size": 7}) == usual
    assert value({"spec.populateJail.image": "other"}) != usual
    assert value({"spec.k8sNodeFilters.0.nodeSelector": {"a": "b"}}) != usual


@pytest.mark.parametrize("shape", SHAPES)
def test_metrics_of_slurmctld_are_found_while_it_serves_them(shape: str):
    path = f"{CONTROLLER}.openMetrics"
    metrics = {"enabled": True, "serviceMonitor": {"endpoints": ["jobs"]}}
    made = of_shape(shape, {path: metrics}).objects()
    found = [one["spec"]["endpoints"] for one in made if one["kind"] == "ServiceMonitor"]
    assert [one["path"] for one in found[0]] == ["/metrics/jobs"]
    off = of_shape(shape, {path: {"enabled": False}}).objects()
    assert "ServiceMonitor" not in {one["kind"] for one in off}


@pytest.mark.parametrize("shape", SHAPES)
def test_each_file_that_a_pod_mounts_alone_is_there(shape: str):
    found = of_shape(shape)
    every = found.objects()
    maps_ = (one for one in every if one["kind"] == "ConfigMap")
    data = {one["metadata"]["name"]: one.get("data", {}) for one in maps_}
    pods = [one["spec"]["template"]["spec"] for one in every if one["kind"] in WORKLOADS]
    missing: list[str] = []
    for spec in (*pods, found.pod()["spec"]):
        maps = {
            one["name"]: one["configMap"]["name"]
            for one in spec.get("volumes", ())
            if "configMap" in one
        }
        mounts = [each for one in spec["containers"] for each in one.get("volumeMounts", ())]
        missing += [
            each["mountPath"]
            for each in mounts
            if each["name"] in maps
            and "subPath" in each
            and each["subPath"] not in data.get(maps[each["name"]], {})
        ]
    assert missing == []
