import contextlib
import io
import json
import os
import ssl
import tarfile
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509

from penstock.local import cgroups, config, ctr, linux, node, pki, single
from penstock.local.addresses import Addresses
from penstock.local.components import Size, components
from penstock.local.errors import LocalError
from penstock.local.files import can_overlay, clear
from penstock.local.kubeconfig import kubeconfig
from penstock.local.layout import Layout
from penstock.local.node import Node


@pytest.mark.parametrize("name", ["", "a/b", "..", "Upper", "-a", "x" * 41])
def test_a_name_that_is_no_folder_and_no_label_is_rejected(name: str) -> None:
    with pytest.raises(LocalError, match="cannot name a node"):
        Layout(name)


def test_the_state_folder_can_be_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_STATE", str(tmp_path / "state"))
    assert Layout("a").audit_log == tmp_path / "state/a/logs/audit.log"
    assert Node("a").status().state == "absent"


def test_a_folder_goes_though_somebody_still_writes_in_it_for_a_moment(tmp_path: Path) -> None:
    folder = tmp_path / "node"
    (folder / "logs").mkdir(parents=True)
    for number in range(500):
        (folder / "logs" / f"old-{number}").touch()
    begun = threading.Event()

    def write() -> None:
        end = time.monotonic() + 0.3
        number = 0
        while time.monotonic() < end:
            number += 1
            with contextlib.suppress(OSError):
                (folder / "logs" / str(number)).touch()
                (folder / str(number)).mkdir()
            begun.set()

    writer = threading.Thread(target=write)
    writer.start()
    begun.wait()
    clear(folder)
    writer.join()
    assert not folder.exists()


def test_without_root_the_error_names_what_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(LocalError, match="needs root"):
        linux.require_root_linux()
    monkeypatch.setattr("sys.platform", "darwin")
    with pytest.raises(LocalError, match="needs Linux; this is darwin"):
        Node("a").up()


def test_components_start_after_what_they_need_exists() -> None:
    for size in Size:
        parts = components(size, "a", Addresses(200))
        assert len({part.name for part in parts}) == len(parts)
        listening = {part.name for part in parts}
        assert {"etcd", "kube-apiserver"} <= listening
    names = [part.name for part in components(Size.FLEET, "a", Addresses(200))]
    assert "kubelet" not in names
    assert "kwok" in names


def test_kubelet_and_dns_have_the_domain_of_the_cluster() -> None:
    kubelet = yaml.safe_load(config.kubelet(Addresses(200), "penstock-200-a", "corp.example"))
    assert kubelet["clusterDomain"] == "corp.example"
    assert "kubernetes corp.example in-addr.arpa {" in config.corefile(
        Addresses(200), "corp.example"
    )


@pytest.mark.parametrize("wrong", ["corp_example", "Corp.example", ".example", "a b", "x" * 300])
def test_what_is_no_dns_domain_is_rejected_before_anything_starts(
    wrong: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PENSTOCK_STATE", str(tmp_path))
    monkeypatch.setattr(node, "require_root_linux", lambda: None)
    with pytest.raises(LocalError, match="is no DNS domain"):
        Node("domains").up(domain=wrong)
    assert list(tmp_path.iterdir()) == []


def test_the_kubelet_stays_in_the_cgroup_of_its_node() -> None:
    found = yaml.safe_load(config.kubelet(Addresses(200), "penstock-200-a"))
    assert found["cgroupRoot"] == "/penstock-200-a"
    assert found["maxPods"] == 200
    assert found["authentication"]["anonymous"] == {"enabled": False}


def test_every_write_is_audited_and_no_read() -> None:
    rules = yaml.safe_load(config.audit_policy())["rules"]
    assert rules[0]["level"] == "Metadata"
    assert set(rules[0]["verbs"]) == {"create", "update", "patch", "delete", "deletecollection"}
    assert rules[1:] == [{"level": "None"}]


def test_certificates_are_valid_for_their_hosts_and_groups(tmp_path: Path) -> None:
    authority = pki.Authority.new("kubernetes")
    pair = authority.issue("admin", ("system:masters",), ("10.0.0.1", "localhost"))
    found = x509.load_pem_x509_certificate(pair.certificate)
    assert "system:masters" in found.subject.rfc4514_string()
    names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert [str(ip) for ip in names.get_values_for_type(x509.IPAddress)] == ["10.0.0.1"]
    pair.write(tmp_path, "admin")
    assert (tmp_path / "admin.key").stat().st_mode & 0o077 == 0
    context = ssl.create_default_context(cadata=authority.pair.certificate.decode())
    context.load_cert_chain(tmp_path / "admin.crt", tmp_path / "admin.key")


def test_a_kubeconfig_needs_no_other_file() -> None:
    text = kubeconfig("a", "https://10.0.0.1:6443", b"ca", pki.Pair(b"key", b"cert"))
    found = yaml.safe_load(text)
    assert found["current-context"] == "a"
    assert found["clusters"][0]["cluster"]["certificate-authority-data"] == "Y2E="


def test_an_image_of_one_program_is_the_same_for_the_same_program(tmp_path: Path) -> None:
    (tmp_path / "pause").write_bytes(b"program")
    data = single.archive(tmp_path / "pause", "test.local/pause:1", "x86_64")
    assert data == single.archive(tmp_path / "pause", "test.local/pause:1", "x86_64")
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        manifest = tar.extractfile("manifest.json")
        assert manifest is not None
        assert json.load(manifest)[0]["RepoTags"] == ["test.local/pause:1"]


def test_images_are_read_from_the_table() -> None:
    table = (
        "REF TYPE DIGEST SIZE PLATFORMS LABELS\n"
        "a.local/b:1 application/vnd.oci.image.manifest.v1+json sha256:ab 1.0 MiB linux/amd64 -\n"
    )
    assert ctr.parse(table) == {"a.local/b:1": "sha256:ab"}


def test_an_overlay_is_not_laid_on_an_overlay() -> None:
    mounts = "overlay / overlay rw 0 0\n/dev/sda /var/lib ext4 rw 0 0\n"
    assert can_overlay(Path("/var/lib/penstock/a"), mounts)
    assert not can_overlay(Path("/srv/penstock"), mounts)


def test_cgroups_are_made_in_every_hierarchy_and_removed(tmp_path: Path) -> None:
    for hierarchy in ("cpuset", "memory"):
        (tmp_path / hierarchy).mkdir()
    (tmp_path / "cpu").symlink_to("memory")
    cgroups.make("penstock-1-a", tmp_path)
    assert (tmp_path / "memory/penstock-1-a").is_dir()
    (tmp_path / "memory/penstock-1-a/kubepods/pod1").mkdir(parents=True)
    cgroups.remove("penstock-1-a", tmp_path)
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["cpu", "cpuset", "memory"]
    cgroups.remove("penstock-1-a", tmp_path)


def test_the_pods_of_a_node_have_the_cpu_shares_of_all_cores(tmp_path: Path) -> None:
    """As where the kubelet has its group beside other processes."""
    shares = tmp_path / "cpu/penstock-1-a/cpu.shares"
    shares.parent.mkdir(parents=True)
    shares.write_text("1024")
    cgroups.make("penstock-1-a", tmp_path)
    assert int(shares.read_text()) == 1024 * (os.cpu_count() or 1)


def test_a_cgroup_that_goes_by_itself_meanwhile_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "memory/penstock-1-a/kubepods/pod1").mkdir(parents=True)
    real = os.scandir

    def just_gone(at: Any) -> Any:
        if Path(at).name == "pod1":
            Path(at).rmdir()
        return real(at)

    monkeypatch.setattr(os, "scandir", just_gone)
    cgroups.remove("penstock-1-a", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["memory"]


def test_controllers_are_handed_down_in_the_single_hierarchy(tmp_path: Path) -> None:
    (tmp_path / "cgroup.controllers").write_text("cpu memory rdma pids\n")
    cgroups.make("penstock-1-a", tmp_path)
    assert (tmp_path / "cgroup.subtree_control").read_text() == "+cpu +memory +pids"


def test_simulated_nodes_become_ready_at_once_and_report_when_kubelets_do():
    options, _, *stages = yaml.safe_load_all(config.kwok())
    assert options["kind"] == "KwokConfiguration"
    ready, stays = (one["spec"] for one in stages)
    assert "delay" not in ready
    assert stays["delay"] == {
        "durationMilliseconds": 150_000,
        "jitterDurationMilliseconds": 450_000,
    }
    assert ready["next"] == stays["next"]
    chosen = [one["selector"]["matchExpressions"][0]["operator"] for one in (ready, stays)]
    assert chosen == ["NotIn", "In"]
