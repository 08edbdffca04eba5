"""Certificates are renewed in time, and at no moment is one shown that is not trusted."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.x509.verification import PolicyBuilder, Store

from penstock.kube.webhook.certificates import (
    AUTHORITY_LIFETIME,
    LEAF_LIFETIME,
    Bundle,
    expiry,
    next_check,
    renewed,
)

START = datetime(2027, 1, 1, tzinfo=UTC)
HOST = "hook.system.svc"
HOSTS = frozenset({HOST, "192.0.2.7"})


def trusts(authority: bytes, leaf: bytes, now: datetime) -> bool:
    """Whether a client that trusts these authorities takes this leaf at that time."""
    store = Store(x509.load_pem_x509_certificates(authority))
    verifier = PolicyBuilder().store(store).time(now).build_server_verifier(x509.DNSName(HOST))
    try:
        verifier.verify(x509.load_pem_x509_certificate(leaf), [])
    except x509.verification.VerificationError:
        return False
    return True


def made(now: datetime = START) -> Bundle:
    return renewed(None, HOSTS, now)


def test_a_new_one_is_trusted_at_once_and_stays_the_same_while_nothing_is_due():
    bundle = made()
    assert trusts(bundle.authority, bundle.leaf, START)
    assert renewed(bundle, HOSTS, START + LEAF_LIFETIME / 2) == bundle
    assert Bundle.read(bundle.data()) == bundle


def test_the_leaf_is_renewed_with_a_third_of_its_time_left_by_the_same_authority():
    bundle = made()
    later = START + LEAF_LIFETIME * 2 / 3
    new = renewed(bundle, HOSTS, later)
    assert (new.authority, new.authority_key) == (bundle.authority, bundle.authority_key)
    assert expiry(new.leaf) > expiry(bundle.leaf)
    assert trusts(new.authority, new.leaf, expiry(bundle.leaf) + timedelta(days=1))


def test_a_name_that_is_added_is_in_the_certificate_at_once():
    new = renewed(made(), HOSTS | {"other.example.org"}, START + timedelta(minutes=1))
    leaf = x509.load_pem_x509_certificate(new.leaf)
    names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert set(names.get_values_for_type(x509.DNSName)) == {HOST, "other.example.org"}
    assert [str(one) for one in names.get_values_for_type(x509.IPAddress)] == ["192.0.2.7"]


def test_through_all_renewals_of_twenty_years_what_is_shown_is_trusted_before_and_after():
    """Upstream's self-made certificates are never renewed (slinky 5.1, feature row 64)."""
    now, bundle = START, made()
    authorities, leaves = {bundle.authority}, {bundle.leaf}
    while now < START + timedelta(days=365 * 20):
        look = next_check(bundle, now)
        # An operator that is down for most of a week.
        now += max(look, timedelta(hours=1)) if look < timedelta(days=1) else timedelta(days=6)
        new = renewed(bundle, HOSTS, now)
        # Who has not heard yet of what is changed now trusts what is shown all the same.
        assert trusts(bundle.authority, new.leaf, now)
        assert trusts(new.authority, new.leaf, now)
        assert expiry(new.leaf) - now > timedelta(days=20)
        bundle = new
        authorities.add(bundle.authority)
        leaves.add(bundle.leaf)
    assert 3 <= len(authorities) <= 4
    assert len(leaves) > 100
    assert len(x509.load_pem_x509_certificates(bundle.authority)) <= 2


def test_a_new_authority_signs_nothing_before_it_can_be_known():
    now, due, old = START, START + AUTHORITY_LIFETIME * 2 / 3, made()
    while now + timedelta(days=20) < due:
        now += timedelta(days=20)
        old = renewed(old, HOSTS, now)
    new = renewed(old, HOSTS, due)
    assert new.authority.endswith(old.authority)
    assert new.authority != old.authority
    assert new.leaf == old.leaf
    assert next_check(new, due) <= timedelta(hours=2)
    assert renewed(new, HOSTS, due + timedelta(minutes=30)) == new
    late = due + timedelta(hours=2)
    after = renewed(new, HOSTS, late)
    assert not trusts(old.authority, after.leaf, late)
    assert trusts(new.authority, after.leaf, late)


@pytest.mark.parametrize("broken", ["ca.crt", "ca.key", "tls.crt", "tls.key"])
def test_a_secret_whose_parts_do_not_fit_is_no_bundle(broken: str):
    whole, other = made().data(), made().data()
    assert Bundle.read({**whole, broken: other[broken]}) is None
    assert Bundle.read({**whole, broken: b"text"}) is None
    assert Bundle.read({key: value for key, value in whole.items() if key != broken}) is None


def test_it_is_checked_at_least_once_a_day_and_not_all_the_time():
    bundle = made()
    assert next_check(bundle, START) == timedelta(days=1)
    assert next_check(bundle, expiry(bundle.leaf)) == timedelta(minutes=1)
