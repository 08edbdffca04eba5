"""Small pure parts: hashes, quantities, sshd_config, slurmd --conf, host keys."""

from __future__ import annotations

import base64
import hashlib
from fractions import Fraction
from typing import Any

import msgspec
import pytest
from cryptography.hazmat.primitives.serialization import load_ssh_private_key, load_ssh_public_key

from penstock.api.kubernetes.quantity import is_quantity, quantity, same_quantity
from penstock.api.slinky.nodeset import NodeSet
from penstock.render.parts import digest as canonical
from penstock.render.parts import key_secret as keys
from penstock.render.parts import ssh_host_keys as hostkeys
from penstock.render.parts.sshd_config import LOGIN, WORKER, sshd_config
from penstock.render.slinky.nodeset.slurmd_conf import node_conf


def test_equal_objects_have_equal_bytes_and_hashes():
    one, two = {"b": 1, "a": {"d": [1], "c": "ü"}}, {"a": {"c": "ü", "d": [1]}, "b": 1}
    assert canonical.canonical_json(one) == canonical.canonical_json(two)
    assert canonical.digest(one) == canonical.digest(two)
    assert canonical.digest("x") == hashlib.sha256(b"x").hexdigest() == canonical.digest(b"x")


def test_a_file_that_is_not_utf8_has_the_hash_of_its_bytes():
    text = b"\xff\x00".decode(errors="surrogateescape")
    assert canonical.digest(text) == canonical.digest(b"\xff\x00")


def test_a_secrets_hash_is_over_its_decoded_values_in_the_order_of_its_keys():
    data = {"b": base64.b64encode(b"2").decode(), "a": base64.b64encode(b"1").decode()}
    assert canonical.secret_digest(data) == hashlib.sha256(b"12").hexdigest()


@pytest.mark.parametrize(
    ("data", "number"),
    [(b"", "2166136261"), (b"a", "84696446")],  # FNV-1, 32 bit
)
def test_revisions_are_named_as_kubernetes_names_them(data: bytes, number: str):
    letters = "bcdfghjklmnpqrstvwxz2456789"
    assert canonical.revision_hash(data) == "".join(letters[ord(c) % 27] for c in number)


def test_a_collision_gives_another_name():
    assert canonical.revision_hash(b"a", 1) == canonical.revision_hash(b"a1")


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("500m", Fraction(1, 2)),
        ("4Gi", 4 * 1024**3),
        ("2e3", 2000),
        (8, 8),
        ("1.5k", 1500),
        ("1E", 10**18),
        (".5", Fraction(1, 2)),
        ("1.", 1),
    ],
)
def test_quantities_are_read_as_kubernetes_reads_them(text: Any, number: Any):
    assert quantity(text) == number


@pytest.mark.parametrize("text", ["", "many", "1 Gi", "1KiB"])
def test_what_is_no_quantity_is_rejected(text: str):
    with pytest.raises(ValueError, match="quantity"):
        quantity(text)


@pytest.mark.parametrize(
    "text", ["1e1000000000", "1e-1000000000", "1e19", "1" + "0" * 64, "1e2.5", 10**100]
)
def test_a_quantity_beyond_what_kubernetes_keeps_is_rejected_before_it_is_computed(text: Any):
    with pytest.raises(ValueError, match="quantity"):
        quantity(text)
    assert not is_quantity(text)


@pytest.mark.parametrize("text", ["1e18", "1E-18", "+1.5e+03", "1E", "9223372036854775807n", 0.25])
def test_a_quantity_that_kubernetes_keeps_is_taken(text: Any):
    assert is_quantity(text)
    assert same_quantity(text, text)


def test_the_users_sshd_keywords_take_the_place_of_ours():
    """D41."""
    lines = sshd_config(LOGIN, "x11forwarding no\nSubsystem sftp /usr/lib/sftp\n").splitlines()
    assert lines[:2] == ["x11forwarding no", "Subsystem sftp /usr/lib/sftp"]
    assert "X11Forwarding yes" not in lines
    assert lines.count("UsePAM yes") == 1
    assert sum(line.lower().startswith("subsystem") for line in lines) == 1


def test_match_blocks_stay_at_the_end_so_that_they_swallow_nothing_of_ours():
    """D41."""
    lines = sshd_config(WORKER, "Match User root\n  PermitTTY no\n").splitlines()
    assert lines[-2:] == ["Match User root", "  PermitTTY no"]
    assert "AuthenticationMethods publickey password" in lines[:-2]


def nodeset(extra: str, hostname: str = "") -> NodeSet:
    spec: dict[str, Any] = {"controllerRef": {"name": "s"}, "extraConf": extra}
    if hostname:
        spec["template"] = {"spec": {"hostname": hostname}}
    return msgspec.convert({"metadata": {"name": "compute"}, "spec": spec}, NodeSet)


@pytest.mark.parametrize(
    ("extra", "conf"),
    [
        ("", "Features=compute"),
        ("Weight=10", "Features=compute Weight=10"),
        ("Feature=b,a Features=a", "Features=a,b,compute"),
        ("Gres=gpu:1 gres=shard:4", "Features=compute Gres=gpu:1,shard:4"),
        ("nonsense =x y=", "Features=compute"),
        ("Comment=mine extra=rack=7", "Features=compute"),
        ("Gres='gpu:1'", "Features=compute Gres=gpu:1"),
    ],
)
def test_workers_register_with_their_feature_and_the_users_parameters(extra: str, conf: str):
    """Feature row 24."""
    assert node_conf(nodeset(extra)) == conf


def test_the_feature_is_the_hostnames_first_part():
    """Feature row 27."""
    assert node_conf(nodeset("", "gpu-")) == "Features=gpu"


def test_host_keys_are_openssh_pairs_of_three_kinds():
    pairs = hostkeys.generate()
    assert set(pairs) == {f + s for f in hostkeys.FILES for s in ("", ".pub")}
    for name in hostkeys.FILES:
        private = load_ssh_private_key(pairs[name].encode(), None)
        public = load_ssh_public_key(pairs[f"{name}.pub"].encode())
        assert private.public_key() == public


def test_fresh_keys_are_long_printable_and_never_the_same():
    one, two = keys.generate(), keys.generate()
    assert one != two
    assert len(one) == 1024
    assert one.isascii()
