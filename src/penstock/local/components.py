"""The processes of a node for each size, with their arguments; paths are those inside it."""

import enum

from penstock.local import programs
from penstock.local.addresses import Addresses
from penstock.local.config import CONTAINERD_SOCKET, PKI, SIMULATED_KUBELET
from penstock.local.golang import Program
from penstock.local.plan import Component
from penstock.local.versions import KUBERNETES

ETCD = "http://127.0.0.1:2379"
API = "127.0.0.1:6443"
API_READY = "/run/penstock-api-ready"
"""Created once the API server is ready: by then its roles exist. A client that comes earlier is
rejected and waits longer before it retries."""

FLEET_LEASE_S = 600
"""Simulated nodes renew their leases four times in this time. With Kubernetes' 40 s, five thousand
nodes would write five hundred times a second, and one machine would do nothing else."""
FLEET_GRACE_S = 900
"""How long a simulated node may be silent."""


class Size(enum.StrEnum):
    """How much of Kubernetes a node has."""

    API = "api"
    """etcd and the API server: for fast tests of what the API accepts. No controller runs."""
    NODE = "node"
    """All of Kubernetes with one real kubelet."""
    FLEET = "fleet"
    """The control plane, with KWOK in the place of kubelets: simulated nodes by the thousand."""


_API = ("kube-apiserver", "kubectl")
_CONTROL = (*_API, "kube-controller-manager", "kube-scheduler")
_MACHINE = ("kubelet", "kube-proxy")
_OF_KUBERNETES = {Size.API: _API, Size.NODE: (*_CONTROL, *_MACHINE), Size.FLEET: _CONTROL}
_OTHERS: dict[Size, tuple[Program, ...]] = {
    Size.API: (),
    Size.NODE: (
        programs.CRICTL,
        programs.COREDNS_PROGRAM,
        programs.PAUSE,
        programs.VOLUMES,
    ),
    Size.FLEET: (programs.KWOK_PROGRAM,),
}


def programs_of(size: Size, kubernetes: str = KUBERNETES) -> tuple[Program, ...]:
    """The programs of a cluster's first node, which has this release of Kubernetes."""
    found = (programs.kubernetes(name, kubernetes) for name in _OF_KUBERNETES[size])
    return (*found, *_OTHERS[size])


def further_programs(kubernetes: str = KUBERNETES) -> tuple[Program, ...]:
    """Those of a Kubernetes node beside the first of its cluster."""
    found = (programs.kubernetes(name, kubernetes) for name in _MACHINE)
    return (*found, programs.CRICTL)


def further_components(name: str, addresses: Addresses, number: int) -> list[Component]:
    """The processes of Kubernetes node `number` (from 1), which has no control plane."""
    return [runtime(), kubelet(name, addresses, number), proxy(api_of(addresses, number))]


def components(size: Size, name: str, addresses: Addresses) -> list[Component]:
    """The processes of the first node, `name` in Kubernetes, in the order in which they start."""
    found = [etcd(), apiserver(size, addresses)]
    if size is not Size.API:
        found += [controller_manager(size), scheduler()]
    if size is Size.NODE:
        found = [runtime(), volumes(), *found, kubelet(name, addresses), proxy(), coredns()]
    if size is Size.FLEET:
        found.append(kwok(addresses))
    return found


def etcd() -> Component:
    """The store. Its disk writes need not survive the machine: `down` throws them away."""
    return Component(
        "etcd",
        (
            "/usr/bin/etcd",
            "--data-dir=/var/lib/etcd",
            f"--listen-client-urls={ETCD}",
            f"--advertise-client-urls={ETCD}",
            "--listen-peer-urls=http://127.0.0.1:2380",
            "--unsafe-no-fsync",
            "--quota-backend-bytes=4294967296",
            # As kubeadm sets it: without, before 1.34 a watch without changes gets no bookmark.
            "--experimental-watch-progress-notify-interval=5s",
            "--log-level=warn",
        ),
    )


def apiserver(size: Size, addresses: Addresses) -> Component:
    """The API server: RBAC on, nobody anonymous, every write in the audit log."""
    # Without a controller manager nobody makes service accounts, and no pod could be created.
    off = ("--disable-admission-plugins=ServiceAccount",) if size is Size.API else ()
    return Component(
        "kube-apiserver",
        (
            "/usr/local/bin/kube-apiserver",
            f"--advertise-address={addresses.node}",
            "--secure-port=6443",
            f"--etcd-servers={ETCD}",
            f"--service-cluster-ip-range={addresses.services}",
            "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
            f"--service-account-key-file={PKI}/sa.pub",
            f"--service-account-signing-key-file={PKI}/sa.key",
            f"--tls-cert-file={PKI}/apiserver.crt",
            f"--tls-private-key-file={PKI}/apiserver.key",
            f"--client-ca-file={PKI}/ca.crt",
            f"--kubelet-certificate-authority={PKI}/ca.crt",
            f"--kubelet-client-certificate={PKI}/apiserver-kubelet.crt",
            f"--kubelet-client-key={PKI}/apiserver-kubelet.key",
            # The node's name is in nobody's DNS.
            "--kubelet-preferred-address-types=InternalIP",
            "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction",
            "--admission-control-config-file=/etc/kubernetes/admission.yaml",
            "--anonymous-auth=false",
            # For APIs that a server in the cluster serves, such as metrics-server.
            f"--requestheader-client-ca-file={PKI}/front-proxy-ca.crt",
            "--requestheader-allowed-names=front-proxy-client",
            "--requestheader-username-headers=X-Remote-User",
            "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
            f"--proxy-client-cert-file={PKI}/front-proxy-client.crt",
            f"--proxy-client-key-file={PKI}/front-proxy-client.key",
            "--allow-privileged=true",
            "--audit-policy-file=/etc/kubernetes/audit-policy.yaml",
            "--audit-log-path=/var/log/penstock/audit.log",
            # In megabytes: one file, so that what it counts is complete.
            "--audit-log-maxsize=4096",
            *off,
        ),
        needs=("127.0.0.1:2379",),
    )


def controller_manager(size: Size) -> Component:
    """Kubernetes' own controllers, with volumes made as folders of the node."""
    fleet = (
        "--kube-api-qps=1000",
        "--kube-api-burst=2000",
        "--allocate-node-cidrs=false",
        f"--node-monitor-grace-period={FLEET_GRACE_S}s",
    )
    node = (
        # With the default of 20 the controllers alone take five seconds to start.
        "--kube-api-qps=100",
        "--kube-api-burst=200",
        # Each node's CNI configuration names its range.
        "--allocate-node-cidrs=false",
        "--enable-hostpath-provisioner",
    )
    return Component(
        "kube-controller-manager",
        (
            "/usr/local/bin/kube-controller-manager",
            "--kubeconfig=/etc/kubernetes/kube-controller-manager.conf",
            "--bind-address=127.0.0.1",
            "--leader-elect=false",
            "--use-service-account-credentials",
            f"--service-account-private-key-file={PKI}/sa.key",
            f"--root-ca-file={PKI}/ca.crt",
            f"--cluster-signing-cert-file={PKI}/ca.crt",
            f"--cluster-signing-key-file={PKI}/ca.key",
            *(fleet if size is Size.FLEET else node),
        ),
        needs=(API_READY,),
    )


def scheduler() -> Component:
    """The scheduler."""
    return Component(
        "kube-scheduler",
        (
            "/usr/local/bin/kube-scheduler",
            "--config=/etc/kubernetes/kube-scheduler.yaml",
            # It may miss that a PVC was bound while it tried the pod, and then waits for five
            # minutes by default before it tries again.
            "--pod-max-in-unschedulable-pods-duration=10s",
            "--bind-address=127.0.0.1",
        ),
        needs=(API_READY,),
    )


def runtime() -> Component:
    """Containerd."""
    return Component("containerd", ("/usr/bin/containerd", "--log-level=warn"))


def volumes() -> Component:
    """Makes the folders of volumes writable for pods that are not root."""
    return Component("volumes", ("/usr/local/bin/volumes",))


def kubelet(name: str, addresses: Addresses, number: int = 0) -> Component:
    """The kubelet of Kubernetes node `number`."""
    return Component(
        "kubelet",
        (
            "/usr/local/bin/kubelet",
            "--config=/etc/kubernetes/kubelet.yaml",
            "--kubeconfig=/etc/kubernetes/kubelet.conf",
            f"--hostname-override={name}",
            f"--node-ip={addresses.node_of(number)}",
        ),
        needs=(api_of(addresses, number), CONTAINERD_SOCKET),
    )


def api_of(addresses: Addresses, number: int) -> str:
    """Where Kubernetes node `number` finds the API server."""
    return f"{addresses.node}:6443" if number else API


def proxy(needs: str = API_READY) -> Component:
    """kube-proxy, whose rules stay in the node's network namespace."""
    return Component(
        "kube-proxy",
        ("/usr/local/bin/kube-proxy", "--config=/etc/kubernetes/kube-proxy.yaml"),
        needs=(needs,),
    )


def coredns() -> Component:
    """The cluster's DNS, as a process on the node's address."""
    return Component(
        "coredns", ("/usr/local/bin/coredns", "-conf=/etc/kubernetes/Corefile"), needs=(API_READY,)
    )


def kwok(addresses: Addresses) -> Component:
    """The simulated kubelets, which serve the logs of their pods with the API server's certificate.

    All of them are at the node's address.
    """
    return Component(
        "kwok",
        (
            "/usr/local/bin/kwok",
            "--kubeconfig=/etc/kubernetes/kwok.conf",
            "--manage-all-nodes",
            f"--node-lease-duration-seconds={FLEET_LEASE_S}",
            "--config=/etc/kubernetes/kwok.yaml",
            f"--server-address={addresses.node}:{SIMULATED_KUBELET}",
            f"--tls-cert-file={PKI}/apiserver.crt",
            f"--tls-private-key-file={PKI}/apiserver.key",
        ),
        needs=(API_READY,),
    )
