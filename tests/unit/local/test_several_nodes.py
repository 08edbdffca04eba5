"""Names, limits and records of clusters of several nodes, without a node."""

import os
from pathlib import Path

import pytest
import yaml

from penstock.local import config, files, inotify, record
from penstock.local.addresses import Addresses
from penstock.local.components import Size, further_components
from penstock.local.errors import LocalError
from penstock.local.layout import Layout
from penstock.local.node import Node, node_names
from penstock.local.pki import Authority
from penstock.local.record import Further


def test_nodes_are_called_as_asked_and_the_rest_after_the_cluster() -> None:
    assert node_names("c", Size.NODE, None, ()) == ["c"]
    assert node_names("c", Size.NODE, 3, ()) == ["c", "c-2", "c-3"]
    assert node_names("c", Size.NODE, 3, ("login",)) == ["login", "c-2", "c-3"]
    assert node_names("c", Size.NODE, None, ("a", "b")) == ["a", "b"]
    assert node_names("c", Size.FLEET, 5000, ()) == ["c"]


@pytest.mark.parametrize(
    ("count", "names", "words"),
    [
        (0, (), "--nodes is 0; it must be from 1"),
        (1, ("a", "b"), "from 2"),
        (33, (), "to 32"),
        (None, ("a", "a"), "Two nodes have the same name"),
        (None, ("a", ""), "cannot name a node"),
        (2, ("c-2",), "Two nodes have the same name"),
    ],
)
def test_names_that_cannot_be_are_rejected(
    count: int | None, names: tuple[str, ...], words: str
) -> None:
    with pytest.raises(LocalError, match=words):
        node_names("c", Size.NODE, count, names)
    with pytest.raises(LocalError, match="with size node only"):
        node_names("c", Size.FLEET, 1, ("a",))


def instances(proc: Path, count: int) -> None:
    (proc / "12/fd").mkdir(parents=True)
    for number in range(count):
        (proc / "12/fd" / str(number)).symlink_to("anon_inode:inotify")
    (proc / "12/fd/other").symlink_to("/dev/null")


def test_a_node_for_which_the_host_has_no_inotify_left_is_rejected(tmp_path: Path) -> None:
    instances(tmp_path, 120)
    limit = tmp_path / "limit"
    limit.write_text("128\n")
    mine = os.geteuid()
    inotify.check(8, tmp_path, limit, mine)
    with pytest.raises(LocalError, match=r"needs 9 .* uses 120 of 128 .*instances=1024"):
        inotify.check(9, tmp_path, limit, mine)
    inotify.check(9, tmp_path, limit, mine + 1)
    inotify.check(1000, tmp_path, tmp_path / "absent", mine)


def test_a_further_node_has_no_control_plane_and_asks_the_first_ones_api_server() -> None:
    found = {one.name: one for one in further_components("b", Addresses(200), 2)}
    assert set(found) == {"containerd", "kubelet", "kube-proxy"}
    assert "10.200.255.2:6443" in found["kubelet"].needs
    assert "--node-ip=10.200.254.3" in found["kubelet"].command
    assert "10.200.8.0/22" in config.cni(Addresses(200), 2)


def test_a_further_node_gets_certificates_but_not_the_authoritys_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_STATE", str(tmp_path))
    first = Layout("a")
    first.pki.mkdir(parents=True)
    Authority.new("kubernetes").pair.write(first.pki, "ca")
    layout = Layout("a", "b")
    there = Further("b", 1, 200, str(tmp_path / "root"))
    (tmp_path / "root").mkdir()
    files.write_further(layout, there, {})
    names = {path.name for path in layout.pki.iterdir()}
    assert names == {"ca.crt", "kubelet.crt", "kubelet.key"}
    kubelet = yaml.safe_load((layout.upper / "etc/kubernetes/kubelet.yaml").read_text())
    assert kubelet["cgroupRoot"] == "/penstock-200-a.b"
    record.save(layout, there)
    assert [one.further for one in first.all_further] == ["b"]
    assert record.load_further(layout) == there


def test_a_node_of_a_cluster_that_is_not_there_cannot_be_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_STATE", str(tmp_path))
    monkeypatch.setattr("os.geteuid", lambda: 0)
    for change in (Node("a").add, Node("a").stop, Node("a").start, Node("a").delete):
        with pytest.raises(LocalError, match="There is no node a"):
            change("b")
