"""Writes everything a node needs into its folder before its first process starts."""

import contextlib
import errno
import os
import shutil
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec

from penstock.local import config, pki
from penstock.local.addresses import Addresses
from penstock.local.components import Size, components
from penstock.local.kubeconfig import kubeconfig
from penstock.local.layout import Layout
from penstock.local.plan import Plan
from penstock.local.record import Record

SYSCTLS = {
    "vm.overcommit_memory": "1",
    "vm.panic_on_oom": "0",
    "kernel.panic": "10",
    "kernel.panic_on_oops": "1",
    "kernel.keys.root_maxkeys": "1000000",
    "kernel.keys.root_maxbytes": "25000000",
}
"""What the kubelet sets on the machine when it differs (kubelet --protect-kernel-defaults)."""

USERS = {
    "kube-controller-manager": ("system:kube-controller-manager", ()),
    "kube-scheduler": ("system:kube-scheduler", ()),
    "kube-proxy": ("system:kube-proxy", ()),
    "coredns": ("coredns", ()),
    "kwok": ("kwok", ("system:masters",)),
}
"""User and groups of each component's kubeconfig (Kubernetes' default RBAC names)."""

FILLED = {errno.ENOTEMPTY, errno.ENOENT, errno.EBUSY}
"""What removing a folder says while somebody else still makes and removes files in it."""


def write(layout: Layout, there: Record, programs: Mapping[str, Path]) -> None:
    """Fill the node's folder; `programs` are the compiled ones by name."""
    addresses = there.addresses
    overlay = can_overlay(layout.folder)
    if not overlay:
        shutil.copytree(there.root, layout.upper, symlinks=True)
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
    _write_certificates(layout, addresses)
    _write_configuration(layout, there)
    plan = Plan(
        name=layout.name,
        lower=there.root,
        overlay=overlay,
        cgroups=there.size is Size.NODE,
        components=tuple(components(there.size, layout.name, addresses)),
    )
    layout.plan.write_bytes(msgspec.json.encode(plan))


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


def _write_certificates(layout: Layout, addresses: Addresses) -> None:
    folder = layout.pki
    authority = pki.Authority("kubernetes")
    authority.pair.write(folder, "ca")
    ca = authority.pair.certificate
    names = ("kubernetes", "kubernetes.default", "kubernetes.default.svc", "localhost")
    hosts = (
        *names,
        f"kubernetes.default.svc.{config.CLUSTER_DOMAIN}",
        addresses.kubernetes,
        addresses.node,
        "127.0.0.1",
    )
    authority.issue("kube-apiserver", hosts=hosts).write(folder, "apiserver")
    kubelet_admin = authority.issue("kube-apiserver-kubelet-client", ("system:masters",))
    kubelet_admin.write(folder, "apiserver-kubelet")
    authority.issue("kubelet", hosts=(layout.name, addresses.node)).write(folder, "kubelet")
    private, public = pki.signing_key()
    (folder / "sa.pub").write_bytes(public)
    (folder / "sa.key").touch(mode=0o600)
    (folder / "sa.key").write_bytes(private)
    admin = authority.issue("kubernetes-admin", ("system:masters",))
    admin.write(folder, "admin")
    layout.kubeconfig.touch(mode=0o600)
    layout.kubeconfig.write_text(kubeconfig(layout.name, addresses.server, ca, admin))
    users = {**USERS, "kubelet": (f"system:node:{layout.name}", ("system:nodes",))}
    for name, (user, groups) in users.items():
        text = kubeconfig(layout.name, addresses.server, ca, authority.issue(user, groups))
        (layout.upper / "etc/kubernetes" / f"{name}.conf").write_text(text)


def _write_configuration(layout: Layout, there: Record) -> None:
    addresses = there.addresses
    snapshotter = "overlayfs" if can_overlay(layout.folder) else "native"
    texts = {
        "hostname": f"{layout.name}\n",
        "hosts": f"127.0.0.1 localhost\n{addresses.node} {layout.name}\n",
        "resolv.conf": f"nameserver {addresses.node}\n",
        "containerd/config.toml": config.containerd(snapshotter),
        "cni/net.d/10-penstock.conflist": config.cni(addresses),
        "kubernetes/audit-policy.yaml": config.audit_policy(),
        "kubernetes/kubelet.yaml": config.kubelet(addresses, there.cgroup),
        "kubernetes/kube-proxy.yaml": config.proxy(addresses, layout.name),
        "kubernetes/kube-scheduler.yaml": config.scheduler(fast=there.size is Size.FLEET),
        "kubernetes/kwok.yaml": config.kwok(),
        "kubernetes/Corefile": config.corefile(addresses),
    }
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
