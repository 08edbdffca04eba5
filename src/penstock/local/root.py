"""The file tree of a node: Debian packages unpacked into the cache, never into the machine."""

from pathlib import Path

from penstock.local.debian import unpacked

PACKAGES = (
    "conntrack",
    "containerd",
    "containernetworking-plugins",
    "coreutils",
    "dash",
    "etcd-server",
    "iproute2",
    "iptables",
    "mount",
    "procps",
    "runc",
    "util-linux",
)
"""Packages of the root folder. kube-proxy needs conntrack and iptables, and the kubelet mount."""


def node_root() -> Path:
    """The tree, fetched and unpacked when the cache has it not."""
    return unpacked("node-root", PACKAGES, finish=finish, version="2")


def finish(root: Path) -> None:
    """What the packages' maintainer scripts and base-files would have made, as far as needed."""
    for name in ("bin", "sbin", "lib", "lib64"):
        link = root / name
        if not link.exists() and (root / "usr" / name).is_dir():
            link.symlink_to(f"usr/{name}")
    for name in ("dev", "mnt", "opt", "proc", "root", "run", "srv", "sys", "tmp", "usr/local/bin"):
        (root / name).mkdir(parents=True, exist_ok=True)
    (root / "tmp").chmod(0o1777)
    for name in ("iptables", "iptables-save", "iptables-restore"):
        for family in (name, name.replace("ip", "ip6", 1)):
            link = root / "usr/sbin" / family
            if not link.is_symlink() or not link.exists():
                link.unlink(missing_ok=True)
                link.symlink_to("xtables-nft-multi")
    if not (root / "usr/bin/sh").exists():
        (root / "usr/bin/sh").symlink_to("dash")
    (root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
    (root / "etc/group").write_text("root:x:0:\n")
