"""Writes everything a node needs into its folder before its first process starts."""

import contextlib
import errno
import os
import shutil
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec

from penstock.local import config, pki, plain_http
from penstock.local.addresses import Addresses
from penstock.local.components import Size, components, further_components
from penstock.local.kubeconfig import kubeconfig
from penstock.local.layout import Layout
from penstock.local.plan import Plan
from penstock.local.record import Further, Record

SYSCTLS = {
    "vm.overcommit_memory": "1",
    "vm.panic_on_oom": "0",
    "kernel.panic": "10",
    "kernel.panic_on_oops": "1",
    "kernel.keys.root_maxkeys": "1000000",
    "kernel.keys.root_maxbytes": "25000000",
}
"""What the kubelet sets on the machine when it differs (kubelet --protect-kernel-defaults)."""

USERS: dict[str, tuple[str, tuple[str, ...]]] = {
    "kube-controller-manager": ("system:kube-controller-manager", ()),
    "kube-scheduler": ("system:kube-scheduler", ()),
    "coredns": ("coredns", ()),
    "kwok": ("kwok", ("system:masters",)),
}
"""User and groups of each component's kubeconfig (Kubernetes' default RBAC names)."""

WEBHOOK_CLIENT = "kube-apiserver-webhooks"
"""Name in the certificate that the API server presents to webhooks."""

PROXY_USER: dict[str, tuple[str, tuple[str, ...]]] = {"kube-proxy": ("system:kube-proxy", ())}
VOLUMES = "/tmp/hostpath_pv"  # noqa: S108 - see below
"""Where Kubernetes' host-path provisioner makes volumes (a constant in its source)."""

FILLED = {errno.ENOTEMPTY, errno.ENOENT, errno.EBUSY}
"""Errors of removing a folder while another process still creates and removes files in it."""


def write(layout: Layout, there: Record, programs: Mapping[str, Path]) -> None:
    """Fill the folder of a cluster's first node; `programs` are the compiled ones by name."""
    overlay = _write_common(layout, there.root, programs)
    layout.volumes.mkdir(exist_ok=True)
    _write_certificates(layout, there)
    _write_configuration(layout, there)
    real = there.size is Size.NODE
    parts = components(there.size, there.node_name, there.addresses)
    plan = Plan(
        there.node_name,
        there.root,
        overlay,
        real,
        tuple(parts),
        _binds(layout),
        there.owner,
    )
    layout.plan.write_bytes(msgspec.json.encode(plan))


def write_further(
    layout: Layout,
    there: Further,
    programs: Mapping[str, Path],
    owner: tuple[int, int] | None = None,
) -> None:
    """Fill the folder of a further node, with certificates by the authority of the first."""
    overlay = _write_common(layout, there.root, programs)
    authority = pki.Authority.load(Layout(layout.name).pki, "ca")
    (layout.pki / "ca.crt").write_bytes(authority.pair.certificate)
    _write_kubelet_certificates(layout, authority, there.name, there.addresses, there.number)
    plain_http.copy(layout)
    texts = _kubelet_texts(layout, there.name, there.addresses, there.number)
    texts["kubernetes/kubelet.yaml"] = config.kubelet(
        there.addresses, there.cgroup(layout.name), there.domain
    )
    _write_texts(layout, texts)
    parts = further_components(there.name, there.addresses, there.number)
    plan = Plan(there.name, there.root, overlay, True, tuple(parts), _binds(layout), owner)
    layout.plan.write_bytes(msgspec.json.encode(plan))


def _binds(layout: Layout) -> tuple[tuple[str, str], ...]:
    return ((str(layout.volumes), VOLUMES),)


def _write_common(layout: Layout, root: str, programs: Mapping[str, Path]) -> bool:
    """Folders and programs; whether the node's root can be an overlay."""
    overlay = can_overlay(layout.folder)
    if not overlay:
        shutil.copytree(root, layout.upper, symlinks=True)
    for folder in (
        layout.bin,
        layout.pki,
        layout.upper / "etc/containerd",
        layout.upper / "etc/cni/net.d",
        layout.folder / "work",
        layout.folder / "root",
        layout.folder / "sysctl",
        layout.logs,
    ):
        folder.mkdir(parents=True, exist_ok=True)
    var = layout.folder / "var"
    for name in ("lib", "cache", "tmp", "log/penstock"):
        (var / name).mkdir(parents=True, exist_ok=True)
    (var / "run").symlink_to("/run")
    for name, value in SYSCTLS.items():
        (layout.folder / "sysctl" / name).write_text(f"{value}\n")
    for name, source in programs.items():
        place(source, layout.bin / name)
    return overlay


def place(source: Path, target: Path) -> None:
    """`target` becomes the file `source` without copying, where both are on one file system."""
    with contextlib.suppress(OSError):
        os.link(source, target)
        return
    shutil.copy2(source, target)


def can_overlay(folder: Path, mounts: str | None = None) -> bool:
    """Whether `folder` can be the writable layer of an overlay: not on an overlay itself.

    `mounts` is the text of /proc/self/mounts.
    """
    text = Path("/proc/self/mounts").read_text() if mounts is None else mounts
    best, kind = Path("/"), ""
    for line in text.splitlines():
        words = line.split()
        point = Path(words[1])
        if folder.is_relative_to(point) and len(point.parts) >= len(best.parts):
            best, kind = point, words[2]
    return kind not in ("overlay", "fuse-overlayfs")


def _write_certificates(layout: Layout, there: Record) -> None:
    folder, addresses = layout.pki, there.addresses
    authority = pki.Authority.new("kubernetes")
    authority.pair.write(folder, "ca")
    ca = authority.pair.certificate
    names = ("kubernetes", "kubernetes.default", "kubernetes.default.svc", "localhost")
    hosts = (
        *names,
        f"kubernetes.default.svc.{there.domain}",
        addresses.kubernetes,
        addresses.node,
        "127.0.0.1",
    )
    authority.issue("kube-apiserver", hosts=hosts).write(folder, "apiserver")
    kubelet_admin = authority.issue("kube-apiserver-kubelet-client", ("system:masters",))
    kubelet_admin.write(folder, "apiserver-kubelet")
    front_proxy = pki.Authority.new("front-proxy")
    front_proxy.pair.write(folder, "front-proxy-ca")
    front_proxy.issue("front-proxy-client").write(folder, "front-proxy-client")
    private, public = pki.signing_key()
    (folder / "sa.pub").write_bytes(public)
    (folder / "sa.key").touch(mode=0o600)
    (folder / "sa.key").write_bytes(private)
    admin = authority.issue("kubernetes-admin", ("system:masters",))
    admin.write(folder, "admin")
    layout.kubeconfig.touch(mode=0o600)
    layout.kubeconfig.write_text(kubeconfig(layout.name, addresses.server, ca, admin))
    _write_users(layout, authority, addresses, USERS)
    # A user of this name is for webhooks at all hosts.
    webhooks = kubeconfig("*", addresses.server, ca, authority.issue(WEBHOOK_CLIENT))
    (layout.upper / "etc/kubernetes/webhooks.conf").write_text(webhooks)
    _write_kubelet_certificates(layout, authority, there.node_name, addresses, 0)


def _write_kubelet_certificates(
    layout: Layout, authority: pki.Authority, name: str, addresses: Addresses, number: int
) -> None:
    """What the kubelet and kube-proxy of Kubernetes node `number` serve and ask with."""
    hosts = (name, addresses.node_of(number))
    authority.issue("kubelet", hosts=hosts).write(layout.pki, "kubelet")
    kubelet = (f"system:node:{name}", ("system:nodes",))
    _write_users(layout, authority, addresses, {"kubelet": kubelet, **PROXY_USER})


def _write_users(
    layout: Layout,
    authority: pki.Authority,
    addresses: Addresses,
    users: Mapping[str, tuple[str, tuple[str, ...]]],
) -> None:
    ca = authority.pair.certificate
    for name, (user, groups) in users.items():
        text = kubeconfig(layout.name, addresses.server, ca, authority.issue(user, groups))
        (layout.upper / "etc/kubernetes" / f"{name}.conf").write_text(text)


def _write_configuration(layout: Layout, there: Record) -> None:
    addresses = there.addresses
    texts = {
        **_kubelet_texts(layout, there.node_name, addresses, 0),
        "kubernetes/admission.yaml": config.admission(),
        "kubernetes/audit-policy.yaml": config.audit_policy(),
        "kubernetes/kubelet.yaml": config.kubelet(addresses, there.cgroup, there.domain),
        "kubernetes/kube-scheduler.yaml": config.scheduler(fast=there.size is Size.FLEET),
        "kubernetes/kwok.yaml": config.kwok(),
        "kubernetes/Corefile": config.corefile(addresses, there.domain),
    }
    _write_texts(layout, texts)


def _kubelet_texts(layout: Layout, name: str, addresses: Addresses, number: int) -> dict[str, str]:
    """Configuration of Kubernetes node `number`, below /etc."""
    snapshotter = "overlayfs" if can_overlay(layout.folder) else "native"
    return {
        "hostname": f"{name}\n",
        "hosts": f"127.0.0.1 localhost\n{addresses.node_of(number)} {name}\n",
        "resolv.conf": f"nameserver {addresses.node}\n",
        "crictl.yaml": config.crictl(),
        "containerd/config.toml": config.containerd(snapshotter),
        "cni/net.d/10-penstock.conflist": config.cni(addresses, number),
        "kubernetes/kube-proxy.yaml": config.proxy(addresses, name),
    }


def _write_texts(layout: Layout, texts: Mapping[str, str]) -> None:
    for name, text in texts.items():
        (layout.upper / "etc" / name).write_text(text)


def clear(folder: Path, timeout: float = 10.0) -> None:
    """Remove a node's folder.

    A first process whose `up` was killed before its pid was known ends by itself, but may write
    here until it does, so a folder that fills again is cleared again for `timeout` seconds.
    Raises OSError.
    """
    deadline = time.monotonic() + timeout
    while folder.exists():
        try:
            shutil.rmtree(folder)
        except OSError as error:
            if error.errno not in FILLED or time.monotonic() > deadline:
                raise
            time.sleep(0.05)
