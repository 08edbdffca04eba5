"""The configuration files of a node's components; paths are those inside the node."""

import json
from typing import Any

import yaml

from penstock.local.addresses import Addresses

PAUSE_IMAGE = "penstock.local/pause:1"
CONTAINERD_SOCKET = "/run/containerd/containerd.sock"
PKI = "/etc/kubernetes/pki"
CLUSTER_DOMAIN = "cluster.local"
"""The DNS domain of a cluster for which no other is chosen."""
MAX_PODS = 200


def containerd(snapshotter: str) -> str:
    """Containerd's config.toml."""
    return f"""version = 3
root = "/var/lib/containerd"
state = "/run/containerd"

[grpc]
address = "{CONTAINERD_SOCKET}"

[plugins."io.containerd.cri.v1.images"]
snapshotter = "{snapshotter}"

[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = "{PAUSE_IMAGE}"

[plugins."io.containerd.cri.v1.images".registry]
config_path = "/etc/containerd/certs.d"

[plugins."io.containerd.cri.v1.runtime"]
# Root in a sandboxed virtual machine may lack CAP_SYS_RESOURCE, and then no sandbox would start.
restrict_oom_score_adj = true

[plugins."io.containerd.cri.v1.runtime".cni]
bin_dirs = ["/usr/lib/cni"]
conf_dir = "/etc/cni/net.d"

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
BinaryName = "/usr/sbin/runc"
SystemdCgroup = false
"""


def crictl() -> str:
    """Where crictl finds containerd."""
    return f"runtime-endpoint: unix://{CONTAINERD_SOCKET}\n"


def cni(addresses: Addresses, number: int = 0) -> str:
    """The network of the pods of node `number`: a point-to-point link each.

    So every packet is routed. With a bridge, packets between pods would pass kube-proxy's rules
    only where the kernel hands bridged packets to iptables.
    """
    return json.dumps(
        {
            "cniVersion": "1.0.0",
            "name": "penstock",
            "plugins": [
                {
                    "type": "ptp",
                    "ipam": {
                        "type": "host-local",
                        "ranges": [[{"subnet": addresses.pods_of(number)}]],
                        "routes": [{"dst": "0.0.0.0/0"}],
                    },
                },
                {"type": "portmap", "capabilities": {"portMappings": True}},
            ],
        },
        indent=1,
    )


def kubelet(addresses: Addresses, cgroup: str, domain: str = CLUSTER_DOMAIN) -> str:
    """KubeletConfiguration."""
    return yaml.safe_dump(
        {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": True},
                "x509": {"clientCAFile": f"{PKI}/ca.crt"},
            },
            "authorization": {"mode": "Webhook"},
            "tlsCertFile": f"{PKI}/kubelet.crt",
            "tlsPrivateKeyFile": f"{PKI}/kubelet.key",
            "containerRuntimeEndpoint": f"unix://{CONTAINERD_SOCKET}",
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": f"/{cgroup}",
            "failCgroupV1": False,
            "failSwapOn": False,
            "clusterDNS": [addresses.dns],
            "clusterDomain": domain,
            "maxPods": MAX_PODS,
            "oomScoreAdj": 0,
            "resolvConf": "/etc/resolv.conf",
            # Images come from files, not from a registry: one collected would never come back,
            # and how full the machine's disk is must not evict pods.
            "imageGCHighThresholdPercent": 100,
            "evictionHard": {
                "memory.available": "100Mi",
                "nodefs.available": "1%",
                "nodefs.inodesFree": "1%",
                "imagefs.available": "1%",
            },
        },
        sort_keys=False,
    )


def proxy(addresses: Addresses, name: str) -> str:
    """KubeProxyConfiguration."""
    return yaml.safe_dump(
        {
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
            "kind": "KubeProxyConfiguration",
            "clientConnection": {"kubeconfig": "/etc/kubernetes/kube-proxy.conf"},
            "mode": "iptables",
            "clusterCIDR": addresses.pods,
            "hostnameOverride": name,
            "oomScoreAdj": 0,
            # These sysctls belong to the machine, not to the node's network namespace.
            "conntrack": {
                "maxPerCore": 0,
                "min": 0,
                "tcpEstablishedTimeout": "0s",
                "tcpCloseWaitTimeout": "0s",
            },
        },
        sort_keys=False,
    )


def scheduler(*, fast: bool) -> str:
    """KubeSchedulerConfiguration; `fast` lifts the client's rate limit for a big fleet."""
    connection: dict[str, Any] = {"kubeconfig": "/etc/kubernetes/kube-scheduler.conf"}
    if fast:
        connection |= {"qps": 1000, "burst": 2000}
    return yaml.safe_dump(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "clientConnection": connection,
            "leaderElection": {"leaderElect": False},
        },
        sort_keys=False,
    )


NODE_REPORT_S = (150, 450)
"""When a kubelet writes its Node once more though nothing changed, in seconds: at random.

Its nodeStatusReportFrequency of 300 with up to half of that more or less, so that machines that
came together do not report together. Source: `calculateDelay` in the kubelet of Kubernetes 1.34.
"""
SIMULATED_KUBELET = 10247
"""Port of the kubelets of all simulated nodes, at the address of the node."""
SIMULATED_LOG = "/var/log/penstock/simulated-reconfigure.log"
"""Written by whoever simulates slurmctld."""
_NODE_STATUS = """\
{{ $now := Now }}
phase: Running
conditions:
- type: Ready
  status: "True"
  reason: KubeletReady
  message: kubelet is posting ready status
  lastHeartbeatTime: {{ $now | Quote }}
  lastTransitionTime: {{ or .metadata.creationTimestamp $now | Quote }}
"""


def kwok() -> str:
    """KwokConfiguration: with its four at a time it would be slower than any client makes pods.

    And how simulated Nodes become and stay Ready: by itself KWOK 0.7 writes each every 21 s where
    there are Leases, which thousands of them are not to do.

    The log of each container `reconfigure` is the file SIMULATED_LOG, in the form of CRI. Source:
    KWOK's "Logs" and the kubelet's "Logging of the CRI".
    """
    options = {"podPlayStageParallelism": 64, "nodePlayStageParallelism": 64}
    soonest, latest = NODE_REPORT_S
    later = {
        "durationMilliseconds": 1000 * soonest,
        "jitterDurationMilliseconds": 1000 * latest,
    }
    return yaml.safe_dump_all(
        [
            {
                "apiVersion": "config.kwok.x-k8s.io/v1alpha1",
                "kind": "KwokConfiguration",
                "options": options,
            },
            {
                "apiVersion": "kwok.x-k8s.io/v1alpha1",
                "kind": "ClusterLogs",
                "metadata": {"name": "reconfigure"},
                "spec": {"logs": [{"containers": ["reconfigure"], "logsFile": SIMULATED_LOG}]},
            },
            _node_stage("node-becomes-ready", "NotIn", {}),
            _node_stage("node-stays-ready", "In", {"delay": later}),
        ]
    )


def _node_stage(name: str, ready: str, when: dict[str, Any]) -> dict[str, Any]:
    """What KWOK writes to the status of Nodes that are Ready (`In`) or are not (`NotIn`)."""
    status = '.status.conditions.[] | select( .type == "Ready" ) | .status'
    chosen = [{"key": status, "operator": ready, "values": ["True"]}]
    return {
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "Stage",
        "metadata": {"name": name},
        "spec": {
            "resourceRef": {"apiGroup": "v1", "kind": "Node"},
            "selector": {"matchExpressions": chosen},
            **when,
            "next": {"statusTemplate": _NODE_STATUS},
        },
    }


def corefile(addresses: Addresses, domain: str = CLUSTER_DOMAIN) -> str:
    """CoreDNS: the cluster's names, and a quick "no such name" for every other."""
    return f""".:53 {{
    bind {addresses.node}
    errors
    health 127.0.0.1:8080
    ready 127.0.0.1:8181
    cache 5
    kubernetes {domain} in-addr.arpa {{
        kubeconfig /etc/kubernetes/coredns.conf
        pods insecure
        fallthrough in-addr.arpa
    }}
    template ANY ANY . {{
        rcode NXDOMAIN
    }}
}}
"""


def admission() -> str:
    """AdmissionConfiguration: what the API server presents to webhooks.

    Source: Kubernetes documentation, "Dynamic Admission Control", Authenticate apiservers.
    """
    version = "apiserver.config.k8s.io/v1"
    webhooks = {
        "apiVersion": version,
        "kind": "WebhookAdmissionConfiguration",
        "kubeConfigFile": "/etc/kubernetes/webhooks.conf",
    }
    names = ("ValidatingAdmissionWebhook", "MutatingAdmissionWebhook")
    return yaml.safe_dump(
        {
            "apiVersion": version,
            "kind": "AdmissionConfiguration",
            "plugins": [{"name": name, "configuration": webhooks} for name in names],
        },
        sort_keys=False,
    )


def audit_policy() -> str:
    """Who changed what: every write with its user, no reads."""
    return yaml.safe_dump(
        {
            "apiVersion": "audit.k8s.io/v1",
            "kind": "Policy",
            "omitStages": ["RequestReceived"],
            "rules": [
                {
                    "level": "Metadata",
                    "verbs": ["create", "update", "patch", "delete", "deletecollection"],
                },
                {"level": "None"},
            ],
        },
        sort_keys=False,
    )
