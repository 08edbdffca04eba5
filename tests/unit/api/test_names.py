"""Derived names and keys are those that users and other tools know."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.api.cluster import marks
from penstock.api.cluster.cluster_ref import ControllerRef
from penstock.api.kubernetes.kinds import Pod, PodSpec, PodStatus
from penstock.api.kubernetes.meta import ObjectMeta
from penstock.api.kubernetes.spec_parts import PodTemplate, SecretKeySelector, ServiceSpec
from penstock.api.slinky import labels as slinky_labels
from penstock.api.slinky import names
from penstock.api.slinky.accounting import Accounting, AccountingSpec
from penstock.api.slinky.common import ExternalConfig
from penstock.api.slinky.controller import Controller, ControllerSpec
from penstock.api.slinky.loginset import LoginSet, LoginSetSpec
from penstock.api.slinky.nodeset import NodeSet, NodeSetSpec
from penstock.api.slinky.restapi import RestApi, RestApiSpec
from penstock.api.slinky.token import Token, TokenSpec

META = ObjectMeta(name="slinky", namespace="slurm")
REF = ControllerRef(name="slinky")


def controller(**spec: Any) -> Controller:
    return Controller(metadata=META, spec=ControllerSpec(**spec))


def nodeset(hostname: str = "", padding: int = 0) -> NodeSet:
    template = PodTemplate(spec={"hostname": hostname} if hostname else {})
    spec = NodeSetSpec(controller_ref=REF, template=template, ordinal_padding=padding)
    return NodeSet(metadata=ObjectMeta(name="compute", namespace="slurm"), spec=spec)


def test_a_controllers_objects():
    made = controller()
    assert names.cluster_name(made) == "slurm_slinky"
    assert names.cluster_name(controller(cluster_name="big")) == "big"
    assert names.controller_pod(made) == "slinky-controller-0"
    assert names.controller_service(made) == "slinky-controller"
    assert names.controller_service_alias(made) == "slurm-controller-slinky"
    assert names.controller_headless_service(made) == "slinky-controller-internal"
    assert names.config_map(made) == "slinky-config"
    assert names.config_map_alias(made) == "slurm-config-slinky"


def test_keys_are_the_declared_ones_or_generated_ones():
    given_ref = SecretKeySelector(name="mine", key="k")
    assert names.slurm_key_ref(controller(slurm_key_ref=given_ref)) == given_ref
    assert names.slurm_key_ref(controller()).name == "slinky-auth-slurm"
    assert names.jwt_key_ref(controller(jwt_hs256_key_ref=given_ref)) == given_ref
    assert names.jwt_key_ref(controller()) == SecretKeySelector(
        name="slinky-auth-jwt", key="jwt.key"
    )


@pytest.mark.parametrize(
    ("made", "host", "port"),
    [
        (controller(), "slinky-controller.slurm", 6817),
        (controller(service=ServiceSpec(port=16817)), "slinky-controller.slurm", 16817),
        (controller(external=True, external_config=ExternalConfig(host="h")), "h", 6817),
        (controller(external=True, external_config=ExternalConfig(host="h", port=1)), "h", 1),
    ],
)
def test_where_slurmctld_is_reached(made: Controller, host: str, port: int):
    """D15."""
    assert (names.slurmctld_host(made), names.slurmctld_port(made)) == (host, port)


def test_where_slurmdbd_is_reached():
    """D1, D15."""
    inside = Accounting(metadata=META, spec=AccountingSpec(service=ServiceSpec(port=16819)))
    assert (names.accounting_host(inside), names.accounting_port(inside)) == (
        "slinky-accounting",
        16819,
    )
    config = ExternalConfig(host="db.example.com")
    outside = Accounting(metadata=META, spec=AccountingSpec(external=True, external_config=config))
    assert (names.accounting_host(outside), names.accounting_port(outside)) == (
        "db.example.com",
        6819,
    )


@pytest.mark.parametrize(
    ("made", "pod", "node", "partition"),
    [
        (nodeset(), "compute-2", "compute-2", "compute"),
        (nodeset("gpu-"), "compute-2", "gpu-2", "gpu"),
        (nodeset("gpu", 3), "compute-002", "gpu002", "gpu"),
    ],
)
def test_a_workers_names(made: NodeSet, pod: str, node: str, partition: str):
    assert names.pod_name(made, 2) == pod
    assert names.slurm_node_name(made, 2) == node
    assert names.partition_name(made) == partition


@given(st.integers(0, 10**6), st.integers(0, 6))
def test_an_ordinal_is_found_again_in_its_pods_name(ordinal: int, padding: int):
    made = nodeset(padding=padding)
    assert names.ordinal_of(made, names.pod_name(made, ordinal)) == ordinal


@pytest.mark.parametrize("pod", ["compute", "compute-", "compute-x", "other-1", "compute-1-2"])
def test_a_name_of_another_pod_has_no_ordinal(pod: str):
    assert names.ordinal_of(nodeset(), pod) is None


@pytest.mark.parametrize(
    ("spec", "host"),
    [
        (PodSpec(hostname="gpu-1", node_name="m1"), "gpu-1"),
        (PodSpec(node_name="m1"), "compute-1"),
        (PodSpec(hostname="gpu-1", node_name="m1", host_network=True), "m1"),
        (PodSpec(hostname="gpu-1.cluster"), "gpu-1"),
        (PodSpec(hostname="gpu-1", host_network=True), "compute-1"),
    ],
)
def test_the_host_name_of_a_pod(spec: PodSpec, host: str):
    assert Pod(metadata=ObjectMeta(name="compute-1"), spec=spec).host == host


def test_a_decoded_pod_computes_ready_once_and_a_changed_one_again():
    text = b"""{"metadata": {"name": "compute-1"}, "spec": {"nodeName": "m1"},
               "status": {"conditions": [{"type": "Ready", "status": "True"}]}}"""
    pod = msgspec.json.decode(text, type=Pod)
    assert (pod.ready, pod.host) == (True, "compute-1")
    assert not msgspec.structs.replace(pod, status=PodStatus()).ready


def test_other_objects():
    made = nodeset()
    assert names.worker_service("slinky") == "slurm-workers-slinky"
    assert names.worker_budget("slinky") == "slurm-workers-pdb-slinky"
    assert names.worker_pvc(made, "scratch", 1) == "scratch-compute-1"
    assert names.worker_ssh_config(made) == "compute-ssh-config"
    assert names.reservation(made) == "SlurmOperatorMaint-compute"
    login = LoginSet(metadata=META, spec=LoginSetSpec(controller_ref=REF))
    assert names.login_workload(login) == names.login_service(login) == "slinky"
    assert names.login_ssh_config(login) == "slinky-ssh-config"
    assert names.login_host_keys(login) == "slinky-ssh-host-keys"
    rest = RestApi(metadata=META, spec=RestApiSpec(controller_ref=REF))
    assert names.restapi_workload(rest) == names.restapi_service(rest) == "slinky-restapi"
    token = Token(metadata=META, spec=TokenSpec(username="u"))
    assert names.token_secret(token) == SecretKeySelector(name="slinky-jwt-u", key="SLURM_JWT")


@pytest.mark.parametrize("key", slinky_labels.POD_CORDON_KEYS)
def test_either_spelling_cordons_a_pod(key: str):
    """S016."""
    assert slinky_labels.pod_cordoned({key: "true"})
    assert not slinky_labels.pod_cordoned({key: "True"})
    assert not slinky_labels.pod_cordoned({})


def test_worker_pods_answer_to_all_three_selectors():
    found = slinky_labels.worker_labels("compute", "slinky")
    assert found["slinky.slurm.net/component"] == "slurmd"
    assert found["app.kubernetes.io/name"] == "slurmd"
    assert found["app.kubernetes.io/component"] == "worker"
    assert found["slinky.slurm.net/cluster"] == "slinky"


def test_our_own_marks_differ_from_slurm_operators():
    ours = [
        value
        for value in vars(marks).values()
        if isinstance(value, str) and "penstock.dev/" in value
    ]
    assert {marks.CORDONED_FOR, marks.CONFIG_HASH, marks.RESTART} <= {*ours}
    assert all(re.fullmatch(r"(\w+\.)?penstock\.dev/([a-z-]+|[A-Z][A-Za-z]+)", key) for key in ours)
