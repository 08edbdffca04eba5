from __future__ import annotations

from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.render.parts import merge

OURS: dict[str, Any] = {
    "name": "slurmd",
    "image": "ours",
    "args": ["-Z"],
    "command": ["ours"],
    "env": [
        {"name": "A", "value": "ours"},
        {"name": "SACKD_OPTIONS", "value": "--conf-server x:1"},
    ],
    "ports": [{"name": "slurmd", "containerPort": 6818, "protocol": "TCP"}],
    "volumeMounts": [{"name": "etc", "mountPath": "/etc/slurm", "readOnly": True}],
    "securityContext": {"privileged": True, "runAsNonRoot": True, "runAsUser": 401},
    "livenessProbe": {"httpGet": {"path": "/livez", "port": "slurmd"}, "periodSeconds": 10},
    "lifecycle": {"preStop": {"exec": {"command": ["ours"]}}},
}


def test_arguments_are_appended_and_a_command_is_replaced():
    out = merge.container(OURS, {"args": ["-v"], "command": ["theirs"]})
    assert out["args"] == ["-Z", "-v"]
    assert out["command"] == ["theirs"]


@pytest.mark.parametrize(("field", "value"), [("privileged", False), ("runAsUser", 0)])
def test_false_and_zero_are_values(field: str, value: Any):
    """D6."""
    out = merge.container(OURS, {"securityContext": {field: value}})
    assert out["securityContext"] == {**OURS["securityContext"], field: value}


@pytest.mark.parametrize("wish", [None, {}, {"image": None}, {"image": ""}, {"env": None}])
def test_absent_and_null_fields_leave_ours(wish: Any):
    assert merge.container(OURS, wish) == OURS


def test_environment_mounts_and_ports_are_merged_by_their_keys():
    out = merge.container(
        OURS,
        {
            "env": [
                {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
                {"name": "B", "value": "1"},
            ],
            "volumeMounts": [{"name": "other", "mountPath": "/etc/slurm"}],
            "ports": [{"name": "slurmd", "containerPort": 7000}, {"containerPort": 22}],
        },
    )
    assert out["env"][0] == {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}
    assert out["env"][2] == {"name": "B", "value": "1"}
    assert out["volumeMounts"] == [{"name": "other", "mountPath": "/etc/slurm"}]
    assert [p["containerPort"] for p in out["ports"]] == [7000, 22]


def test_options_of_sackd_are_joined_so_that_it_still_finds_slurmctld():
    """D14."""
    out = merge.container(OURS, {"env": [{"name": "SACKD_OPTIONS", "value": "-vvv"}]})
    assert out["env"][1]["value"] == "--conf-server x:1 -vvv"


def test_a_probes_and_a_hooks_handler_are_replaced_and_the_rest_is_merged():
    out = merge.container(
        OURS,
        {
            "livenessProbe": {"tcpSocket": {"port": 1}, "periodSeconds": 0},
            "lifecycle": {
                "preStop": {"httpGet": {"port": 1}},
                "postStart": {"exec": {"command": ["true"]}},
            },
        },
    )
    assert out["livenessProbe"] == {"tcpSocket": {"port": 1}, "periodSeconds": 0}
    assert out["lifecycle"] == {
        "preStop": {"httpGet": {"port": 1}},
        "postStart": {"exec": {"command": ["true"]}},
    }
    softer = merge.container(OURS, {"livenessProbe": {"periodSeconds": 60}})
    assert softer["livenessProbe"]["httpGet"] == OURS["livenessProbe"]["httpGet"]


POD: dict[str, Any] = {
    "containers": [OURS],
    "volumes": [{"name": "run", "emptyDir": {"medium": "Memory"}}],
    "tolerations": [{"key": "worker", "effect": "NoExecute"}],
    "dnsConfig": {"searches": ["workers"]},
    "affinity": {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "h"}]
        }
    },
}


def test_a_container_of_our_name_is_merged_and_another_is_added():
    out = merge.pod_spec(POD, {"containers": [{"name": "slurmd", "tty": True}, {"name": "x"}]})
    assert [c["name"] for c in out["containers"]] == ["slurmd", "x"]
    assert out["containers"][0]["image"] == "ours"
    assert out["containers"][0]["tty"] is True


def test_a_volume_of_our_name_has_only_the_users_source():
    out = merge.pod_spec(POD, {"volumes": [{"name": "run", "hostPath": {"path": "/x"}}]})
    assert out["volumes"] == [{"name": "run", "hostPath": {"path": "/x"}}]


def test_tolerations_searches_and_anti_affinity_are_ours_and_the_users():
    out = merge.pod_spec(
        POD,
        {
            "tolerations": [{"key": "gpu"}],
            "dnsConfig": {"searches": ["example.com"], "nameservers": ["192.0.2.1"]},
            "affinity": {
                "nodeAffinity": {"x": 1},
                "podAntiAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]
                },
            },
        },
    )
    assert [t["key"] for t in out["tolerations"]] == ["worker", "gpu"]
    assert out["dnsConfig"] == {
        "searches": ["workers", "example.com"],
        "nameservers": ["192.0.2.1"],
    }
    terms = out["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert [t["topologyKey"] for t in terms] == ["h", "zone"]
    assert out["affinity"]["nodeAffinity"] == {"x": 1}


@pytest.mark.parametrize("key", ["dNSPolicy", "dnsPolicy"])
def test_both_spellings_of_the_dns_policy_mean_the_same(key: str):
    """S069."""
    assert merge.pod_spec(POD, {key: "Default"})["dnsPolicy"] == "Default"
    assert "dNSPolicy" not in merge.pod_spec(POD, {key: "Default"})


@pytest.mark.parametrize(
    ("user", "policy"),
    [
        ({"hostNetwork": True}, "ClusterFirstWithHostNet"),
        ({"hostNetwork": True, "dNSPolicy": "Default"}, "Default"),
        ({"hostNetwork": False}, None),
    ],
)
def test_in_the_hosts_network_names_of_the_cluster_are_still_found(user: Any, policy: str | None):
    """S069: upstream's pods ask their machine, which knows none of them."""
    assert merge.pod_spec(POD, user).get("dnsPolicy") == policy


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=10,
)


def nulls(value: Any) -> bool:
    if isinstance(value, dict):
        return any(v is None or nulls(v) for v in cast("dict[str, Any]", value).values())
    return isinstance(value, list) and any(nulls(v) for v in cast("list[Any]", value))


@given(st.dictionaries(st.sampled_from("abc"), JSON), st.dictionaries(st.sampled_from("abc"), JSON))
def test_merging_is_idempotent_and_never_yields_a_null_of_the_users(base: Any, user: Any):
    base = merge.prune(base)
    once = merge.deep(base, user)
    assert merge.deep(once, user) == once
    assert not nulls(once)


def test_a_field_in_the_wrong_place_does_not_reach_the_api_server():
    """The API server rejects an apply with a field that its schema does not have."""
    stray = {"name": "x", "volumes": [{"name": "v"}], "tty": True}
    assert merge.container({"name": "a"}, stray) == {"name": "x", "tty": True}
    user = {"volumeMounts": [{"name": "v"}], "hostPID": True, "containers": [stray]}
    made = merge.pod_spec({"containers": [{"name": "a"}]}, user)
    assert made == {"containers": [{"name": "a"}, {"name": "x", "tty": True}], "hostPID": True}
