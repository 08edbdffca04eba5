"""Keys that munged and Slurm take, by their length."""

from __future__ import annotations

import pytest

from penstock.api.kubernetes.spec_parts import SecretKeySelector
from penstock.decide.auth.key_length import (
    empty_key_problem,
    munge_key_problem,
    slurm_key_problem,
)

REF = SecretKeySelector(name="site", key="site.key")


@pytest.mark.parametrize("size", [32, 1026])
def test_munge_takes_keys_of_32_bytes_and_those_of_soperator(size: int) -> None:
    assert munge_key_problem("", REF, size) is None


@pytest.mark.parametrize("size", [0, 31])
def test_another_munge_key_is_named_with_its_length(size: int) -> None:
    found = munge_key_problem("spec.mungeKeyRef: ", REF, size)
    assert found is not None
    assert (found.ok, found.reason) == (False, "KeyUnusable")
    assert found.message == (
        f"spec.mungeKeyRef: key site.key of Secret site has {size} bytes, and munge takes 32 or "
        "more: put another key there"
    )


def test_slurm_takes_keys_of_16_bytes() -> None:
    assert slurm_key_problem("", REF, 16) is None
    found = slurm_key_problem("", REF, 15)
    assert found is not None
    assert "has 15 bytes, and auth/slurm takes 16 or more" in found.message


def test_only_an_empty_key_is_none_at_all() -> None:
    """Without a key ring Slurm takes a single byte."""
    assert empty_key_problem("", REF, 1) is None
    found = empty_key_problem("spec.jwtKeyRef: ", REF, 0)
    assert found is not None
    assert found.message == "spec.jwtKeyRef: key site.key of Secret site is empty: put a key there"
