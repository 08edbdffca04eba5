"""Plug-ins of slurm.conf with which no step would run in a jail."""

from __future__ import annotations

import pytest

from penstock.decide.jail.job_namespaces import unfit


@pytest.mark.parametrize(
    "line",
    [
        "JobContainerType=job_container/tmpfs",
        "jobcontainertype=job_container/tmpfs",
        "NamespaceType=namespace/linux",
    ],
)
def test_namespaces_of_jobs_do_not_fit_a_jail(line: str):
    """S106."""
    key, _, value = line.partition("=")
    words = unfit(f"ClusterName=x\n{line}\n")
    assert words.lower().startswith(f"{key.lower()}={value} does not work in a jail")


@pytest.mark.parametrize("line", ["", "NamespaceType=namespace/none", "# NamespaceType=x/y"])
def test_a_cluster_without_them_fits(line: str):
    """S106."""
    assert unfit(f"ClusterName=x\n{line}\n") == ""
