"""Files of users that would take the place of others."""

from __future__ import annotations

import pytest

from penstock.decide.config.files import hidden_files, rejected_files


@pytest.mark.parametrize(
    ("file", "words"),
    [
        ("slurm.conf", "spec.extraConf"),
        ("slurmdbd.conf", "Accounting"),
        ("slurm.key", "spec.slurmKeyRef"),
        ("slurm.jwks", "generated"),
        ("jwt.key", "spec.jwtKeyRef"),
        ("jwks.json", "spec.jwksKeyRef"),
    ],
)
def test_a_file_that_would_replace_one_of_ours_is_refused_with_what_to_do(
    file: str, words: str
) -> None:
    (finding,) = rejected_files([("files", {"gres.conf": "", file: ""})])
    assert (finding.ok, finding.reason) == (False, "ConfigFileRefused")
    assert "ConfigMap files" in finding.message
    assert words in finding.message


def test_files_with_names_of_their_own_are_taken() -> None:
    found = [("files", {"gres.conf": "", "any.conf": ""}), ("scripts", {"prolog.sh": ""})]
    assert rejected_files(found) == hidden_files(found) == []


def test_of_two_files_with_one_name_is_told_which_is_mounted() -> None:
    (finding,) = hidden_files([("a", {"x": "1", "y": ""}), ("b", {"x": "2"}), ("c", {"x": "2"})])
    assert finding.ok is True
    assert finding.message == "file x is that of ConfigMap c, not that of a and b"
