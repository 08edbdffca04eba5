"""What the manifests must and must not say, beyond their recorded form."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs

from penstock.api.slinky.controller import Metrics, ServiceMonitor
from penstock.render.parts import ssh_host_keys as hostkeys
from penstock.render.slinky.cluster import login as loginset
from penstock.render.slinky.cluster import metrics_monitor as monitor
from penstock.render.slinky.cluster import slurmctld as controller
from penstock.render.slinky.cluster import slurmrestd as restapi
from penstock.render.slinky.config.config_maps import declared
from penstock.render.slinky.nodeset import worker_pod as worker


def find(objects: list[dict[str, Any]], kind: str, name: str = "") -> dict[str, Any]:
    return next(
        o for o in objects if o["kind"] == kind and (not name or o["metadata"]["name"] == name)
    )


def stateful_set(bundle: Any) -> dict[str, Any]:
    return find(controller.objects(bundle.cluster), "StatefulSet")


def pod(bundle: Any, ordinal: int = 0) -> dict[str, Any]:
    return worker.pod(bundle.cluster, bundle.cluster.nodesets[0], ordinal)


# Controller


def test_a_new_partition_leaves_slurmctlds_pod_template_alone(load: Any):
    """D2, feature rows 1 and 5."""
    before = stateful_set(load("minimal"))
    after = stateful_set(load("minimal", controller={"extraConf": "PartitionName=x Nodes=ALL"}))
    assert before == after


def test_nothing_is_written_before_slurmctld_that_its_pod_does_not_need(load: Any):
    objects = controller.objects(load("minimal").cluster)
    written = [(one["kind"], one["metadata"]["name"]) for one in objects]
    assert written[:3] == [
        ("Service", "slurm-controller-internal"),
        ("ConfigMap", "slurm-config"),
        ("StatefulSet", "slurm-controller"),
    ]
    assert ("Service", "slurm-controller") in written


def test_the_files_of_a_decision_replace_only_those_that_it_saw(load: Any):
    cluster = load("minimal").cluster
    contents = replace(declared(cluster), startup_at="7")
    versions = {
        one["metadata"]["name"]: one["metadata"].get("resourceVersion", "")
        for one in controller.objects(cluster, contents)
        if one["kind"] == "ConfigMap"
    }
    assert {name for name, version in versions.items() if version} == {"slurm-config"}
    assert versions["slurm-config"] == "7"


def test_a_new_key_restarts_slurmctld(load: Any):
    """Feature row 10."""
    bundle = load("minimal")
    other = replace(bundle, cluster=replace(bundle.cluster, jwt_key_hash="other"))
    assert stateful_set(bundle)["spec"]["template"] != stateful_set(other)["spec"]["template"]


def test_the_objects_own_labels_and_annotations_stay_out_of_its_pods(load: Any):
    """D37, D38, S065."""
    text = str(stateful_set(load("full")))
    assert "last-applied-configuration" not in text
    assert "helm.sh/chart" not in text
    assert "app.kubernetes.io/version" not in text
    assert stateful_set(load("full"))["spec"]["template"]["metadata"]["labels"]["team"] == "hpc"


def test_the_service_finds_a_single_slurmctld_without_the_operator(load: Any):
    """D7."""
    objects = controller.objects(load("minimal").cluster)
    service = find(objects, "Service", "slurm-controller")
    labels = find(objects, "StatefulSet")["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"].items() <= labels.items()


def test_each_slurmctld_of_several_is_found_by_a_service_whether_its_pod_is_there_or_not(load: Any):
    """A connection is refused by kube-proxy while no pod of that name is ready."""
    objects = controller.objects(load("full").cluster)
    conf = find(objects, "ConfigMap")["data"]["slurm.conf"]
    pods = ("slinky-controller-0", "slinky-controller-1")
    for name in pods:
        assert f"SlurmctldHost={name}({name}.hpc)\n" in conf
        spec = find(objects, "Service", name)["spec"]
        assert spec["selector"]["statefulset.kubernetes.io/pod-name"] == name
        assert "clusterIP" not in spec
        assert "publishNotReadyAddresses" not in spec
    names = [one["metadata"]["name"] for one in objects]
    assert all(names.index(name) < names.index("slinky-controller") for name in pods)


def test_a_single_slurmctld_is_found_where_it_was_before(load: Any):
    objects = controller.objects(load("minimal").cluster)
    conf = find(objects, "ConfigMap")["data"]["slurm.conf"]
    host = "SlurmctldHost=slurm-controller-0(slurm-controller-0.slurm-controller-internal."
    assert host in conf
    assert not [one for one in objects if one["metadata"]["name"] == "slurm-controller-0"]


def test_of_several_slurmctld_none_is_active_before_the_operator_labels_one(load: Any):
    labels = stateful_set(load("full"))["spec"]["template"]["metadata"]["labels"]
    assert "controller.slinky.slurm.net/active" not in labels


def test_service_and_configuration_answer_to_both_of_their_names(load: Any):
    """S029, S060."""
    objects = controller.objects(load("minimal").cluster)
    for kind, names in (
        ("Service", ("slurm-controller", "slurm-controller-slurm")),
        ("ConfigMap", ("slurm-config", "slurm-config-slurm")),
    ):
        one, two = (find(objects, kind, name) for name in names)
        assert one.get("spec") == two.get("spec")
        assert one.get("data") == two.get("data")


def test_each_slurmctld_is_found_once_by_monitoring_on_the_main_service(load: Any):
    alias = find(controller.objects(load("minimal").cluster), "Service", "slurm-controller-slurm")
    assert "labels" not in alias["metadata"]


def test_monitoring_finds_one_service_and_reads_slurmctlds_four_paths(load: Any):
    """D20: both of upstream's Services are found, and each slurmctld is read twice."""
    cluster = load("minimal").cluster
    wish = Metrics(enabled=True, service_monitor=ServiceMonitor(enabled=True))
    spec = structs.replace(cluster.controller.spec, metrics=wish)
    cluster = replace(cluster, controller=structs.replace(cluster.controller, spec=spec))
    (found,) = monitor.objects(cluster)
    assert [one["path"].rpartition("/")[2] for one in found["spec"]["endpoints"]] == [
        "jobs",
        "nodes",
        "partitions",
        "scheduler",
    ]
    wanted = found["spec"]["selector"]["matchLabels"].items()
    services = [one for one in controller.objects(cluster) if one["kind"] == "Service"]
    selected = [one for one in services if wanted <= one["metadata"].get("labels", {}).items()]
    assert [one["metadata"]["name"] for one in selected] == ["slurm-controller"]
    assert found["spec"]["endpoints"][0]["port"] in [
        port["name"] for port in selected[0]["spec"]["ports"]
    ]


def test_another_service_port_is_used_everywhere_and_slurmctlds_own_stays_open(load: Any):
    """D14, D15, S082."""
    bundle = load("full")
    service = find(controller.objects(bundle.cluster), "Service", "slinky-controller")
    assert [p["port"] for p in service["spec"]["ports"]] == [7817, 6817]
    assert {p["targetPort"] for p in service["spec"]["ports"]} == {"slurmctld"}
    assert service["spec"]["ports"][0]["nodePort"] == 30817
    assert "slinky-controller.hpc:7817" in pod(bundle)["spec"]["containers"][0]["args"]
    login = find(loginset.objects(bundle.cluster, bundle.loginset), "Deployment")
    env = login["spec"]["template"]["spec"]["containers"][0]["env"]
    assert env[0]["value"] == "--conf-server slinky-controller.hpc:7817 -vvv"


def test_external_addresses_never_reach_a_service(load: Any):
    service = find(controller.objects(load("full").cluster), "Service", "slinky-controller")
    assert "externalIPs" not in service["spec"]
    assert service["spec"]["type"] == "NodePort"


@pytest.mark.parametrize(
    ("persistence", "size", "volume"),
    [
        (None, "4Gi", None),
        ({"enabled": True}, "4Gi", None),
        ({"enabled": True, "resources": {"requests": {"storage": "9Gi"}}}, "9Gi", None),
        ({"enabled": False}, "", {"name": "statesave", "emptyDir": {}}),
        (
            {"enabled": True, "existingClaim": "mine"},
            "",
            {"name": "statesave", "persistentVolumeClaim": {"claimName": "mine"}},
        ),
    ],
)
def test_state_is_kept_as_the_user_declares(persistence: Any, size: str, volume: Any, load: Any):
    """Feature row 7."""
    found = stateful_set(load("minimal", controller={"persistence": persistence}))
    templates = found["spec"].get("volumeClaimTemplates", [])
    if not size:
        assert templates == []
        assert volume in found["spec"]["template"]["spec"]["volumes"]
        return
    assert templates[0]["spec"] == {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": size}},
    }


def test_the_users_anti_affinity_does_not_lose_ours(load: Any):
    """D22."""
    spec = stateful_set(load("full"))["spec"]["template"]["spec"]
    terms = spec["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert [t["topologyKey"] for t in terms] == [
        "kubernetes.io/hostname",
        "topology.kubernetes.io/zone",
    ]


# RestApi


def hashes(bundle: Any) -> dict[str, str]:
    deployment = find(restapi.objects(bundle.cluster, bundle.restapi), "Deployment")
    return deployment["spec"]["template"]["metadata"]["annotations"]


def test_slurmrestd_has_no_slurm_key_and_restarts_neither_for_it_nor_for_a_partition(load: Any):
    """D17, feature row 16."""
    bundle = load("minimal")
    partition = load("minimal", controller={"extraConf": "PartitionName=x Nodes=ALL"})
    assert hashes(partition) == hashes(bundle)
    assert hashes(load("minimal", controller={"clusterName": "other"})) != hashes(bundle)
    key = replace(bundle, cluster=replace(bundle.cluster, slurm_key_hash="other"))
    assert hashes(key) == hashes(bundle)


def test_slurmrestds_address_is_its_last_argument(load: Any):
    for name, args in (
        ("minimal", ["-s", "openapi/slurmctld", "0.0.0.0:6820"]),
        ("full", ["-v", "0.0.0.0:6820"]),
    ):
        bundle = load(name)
        deployment = find(restapi.objects(bundle.cluster, bundle.restapi), "Deployment")
        assert deployment["spec"]["template"]["spec"]["containers"][0]["args"] == args


# LoginSet


def login(bundle: Any, **known: str) -> dict[str, Any]:
    return find(loginset.objects(bundle.cluster, bundle.loginset, **known), "Deployment")


def login_template(bundle: Any, **known: str) -> dict[str, Any]:
    return login(bundle, **known)["spec"]["template"]


def test_changed_root_keys_roll_the_login_pods(load: Any):
    """D16, feature row 17."""
    before = login_template(load("minimal"))
    after = login_template(load("minimal", loginset={"rootSshAuthorizedKeys": "ssh-rsa other"}))
    assert before["metadata"] != after["metadata"]
    assert before["spec"] == after["spec"]


def test_without_sssd_nothing_of_it_is_mounted(load: Any):
    assert "sssd" not in str(login_template(load("minimal"))["spec"])
    assert "/etc/sssd/sssd.conf" in str(login_template(load("full"))["spec"])


def test_readiness_probes_where_sshd_listens(load: Any):
    """D31, feature row 17."""
    for name, port in (("minimal", ":0016 "), ("full", ":08AE ")):
        container = login_template(load(name))["spec"]["containers"][0]
        assert port in container["readinessProbe"]["exec"]["command"][2]


def test_host_keys_are_kept_in_an_immutable_secret_of_the_loginset(load: Any):
    """Feature row 19."""
    bundle = load("minimal")
    secret = loginset.host_keys(bundle.loginset, dict.fromkeys(hostkeys.FILES, "key"))
    assert secret["immutable"] is True
    assert secret["metadata"]["name"] == "login-ssh-host-keys"
    assert secret["data"]["ssh_host_rsa_key"] == "a2V5"
    assert secret["metadata"]["ownerReferences"][0]["kind"] == "LoginSet"


def test_in_the_hosts_network_a_pod_goes_before_the_one_that_needs_its_ports(load: Any):
    """S069: an update of as many pods as there are Kubernetes nodes would wait for ever."""
    shared: Any = {"template": {"spec": {"hostNetwork": True}}}
    one_by_one = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}
    found = load("minimal", loginset=shared, restapi=shared)
    rest = find(restapi.objects(found.cluster, found.restapi), "Deployment")
    assert rest["spec"]["strategy"] == one_by_one
    assert login(found)["spec"]["strategy"] == one_by_one
    chosen = load("minimal", loginset={**shared, "strategy": {"type": "Recreate"}})
    assert login(chosen)["spec"]["strategy"] == {"type": "Recreate"}
    plain = load("minimal")
    rest = find(restapi.objects(plain.cluster, plain.restapi), "Deployment")
    assert "strategy" not in rest["spec"]


# NodeSet


def test_a_topology_that_is_not_known_swallows_no_parameter(load: Any):
    """D3."""
    assert "Topology" not in str(pod(load("full"))["spec"]["containers"][0]["args"])


def test_a_topology_that_is_known_reaches_slurmd_through_the_annotation(load: Any):
    """D3, feature rows 49 and 63."""
    cluster = load("minimal").cluster
    made = worker.pod(cluster, cluster.nodesets[0], 0, topology="topo-switch:s2")
    assert made["metadata"]["annotations"]["topology.slinky.slurm.net/spec"] == "topo-switch:s2"
    fields = {
        e["name"]: e["valueFrom"]["fieldRef"]["fieldPath"]
        for e in made["spec"]["containers"][0]["env"]
        if "valueFrom" in e
    }
    path = "metadata.annotations['topology.slinky.slurm.net/spec']"
    assert fields == {"SLINKY_TOPOLOGY": path, "POD_TOPOLOGY": path}


def env(made: dict[str, Any]) -> dict[str, str]:
    found = {e["name"]: e["value"] for e in made["spec"]["containers"][0]["env"] if "value" in e}
    return {name: value for name, value in found.items() if not name.startswith("SLURM_SACK_")}


def test_limits_are_passed_to_slurmd(load: Any):
    """Feature row 51."""
    limits = {"slurmd": {"resources": {"limits": {"cpu": "7500m", "memory": "2.5Gi"}}}}
    assert env(pod(load("minimal", nodeset=limits))) == {"POD_CPUS": "8", "POD_MEMORY": "2560"}
    whole = {"template": {"spec": {"resources": {"limits": {"cpu": 2}}}}}
    assert env(pod(load("minimal", nodeset=whole))) == {"POD_CPUS": "2"}
    assert env(pod(load("minimal"))) == {}


def test_an_unprivileged_worker_stays_unprivileged(load: Any):
    """D6, D30, S044."""
    security = pod(load("full"))["spec"]["containers"][0]["securityContext"]
    assert security["privileged"] is False
    assert pod(load("minimal"))["spec"]["containers"][0]["securityContext"]["privileged"] is True


@pytest.mark.parametrize(("shared", "apart"), [(False, True), (True, False)])
def test_workers_share_a_kubernetes_node_only_when_asked(shared: bool, apart: bool, load: Any):
    """Feature row 44."""
    made = pod(load("minimal", nodeset={"oversubscribeNode": shared}))
    assert ("affinity" in made["spec"]) is apart


def test_padding_and_host_name_reach_name_labels_and_pvcs(load: Any):
    """Feature rows 22 and 41."""
    cluster = load("full").cluster
    gpu = next(n for n in cluster.nodesets if n.metadata.name == "slurm-worker-gpu")
    made = worker.pod(cluster, gpu, 7)
    assert made["metadata"]["name"] == "slurm-worker-gpu-007"
    assert made["spec"]["hostname"] == "gpu-007"
    labels = made["metadata"]["labels"]
    assert labels["nodeset.slinky.slurm.net/pod-index"] == "007"
    assert labels["nodeset.slinky.slurm.net/pod-hostname"] == "gpu-007"
    claim = {"claimName": "scratch-slurm-worker-gpu-007"}
    assert {"name": "scratch", "persistentVolumeClaim": claim} in made["spec"]["volumes"]
    assert worker.worker_pvcs(gpu, 7)[0]["metadata"]["name"] == "scratch-slurm-worker-gpu-007"


def test_in_the_hosts_network_a_worker_is_called_as_its_kubernetes_node(load: Any):
    """D28, S069."""
    cluster = load("full").cluster
    host = next(n for n in cluster.nodesets if n.metadata.name == "compute")
    made = worker.pod(cluster, host, 0)
    assert "hostname" not in made["spec"]
    assert "nodeset.slinky.slurm.net/pod-hostname" not in made["metadata"]["labels"]
    assert made["spec"]["dnsPolicy"] == "ClusterFirstWithHostNet"
    assert made["spec"]["terminationGracePeriodSeconds"] == 0


def test_workers_carry_the_labels_that_users_select_by(load: Any):
    """S008."""
    labels = pod(load("minimal"))["metadata"]["labels"]
    assert labels["slinky.slurm.net/component"] == "slurmd"
    assert labels["app.kubernetes.io/name"] == "slurmd"
    assert labels["app.kubernetes.io/component"] == "worker"


def revision(load: Any, **nodeset: Any) -> str:
    return worker.revision(load("minimal", nodeset=nodeset).cluster.nodesets[0]).hash


def test_only_what_a_pod_is_made_from_makes_a_new_revision(load: Any):
    """Feature row 40."""
    base = revision(load)
    assert revision(load, replicas=3, partition={"enabled": False}, pinToNode=True) == base
    chart = {"metadata": {"labels": {"helm.sh/chart": "slurm-9"}}}
    assert revision(load, template=chart) == base
    for change in (
        {"extraConf": "Weight=1"},
        {"slurmd": {"image": "x"}},
        {"logfile": {"image": "x"}},
        {"template": {"spec": {"nodeSelector": {"a": "b"}}}},
        {"ordinalPadding": 2},
        {"oversubscribeNode": True},
        {"ssh": {"enabled": True}},
    ):
        assert revision(load, **change) != base


def test_the_controllers_namespace_given_or_not_makes_the_same_pod(load: Any):
    """S006."""
    given = load("minimal", nodeset={"controllerRef": {"name": "slurm", "namespace": "slurm"}})
    assert pod(given) == pod(load("minimal"))


def test_shared_objects_belong_to_every_nodeset_and_are_managed_by_none(load: Any):
    cluster = load("full").cluster
    for shared in worker.shared_objects(cluster):
        owners = shared["metadata"]["ownerReferences"]
        assert [o["name"] for o in owners] == ["compute", "slurm-worker-gpu"]
        assert not any("controller" in o for o in owners)
    assert worker.shared_objects(replace(cluster, nodesets=())) == []


def test_a_service_account_is_ours_under_both_of_its_names(load: Any):
    spec = {"template": {"spec": {"serviceAccountName": "mine"}}}
    bundle = load("minimal", restapi=spec)
    assert bundle.restapi is not None
    found = restapi.objects(bundle.cluster, bundle.restapi)[1]["spec"]["template"]["spec"]
    assert (found["serviceAccountName"], found["serviceAccount"]) == ("mine", "mine")
