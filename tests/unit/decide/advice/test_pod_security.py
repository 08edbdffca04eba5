"""What is told when a namespace's pod security level refuses a worker."""

from __future__ import annotations

from penstock.decide.advice.pod_security import finding

BASELINE = (
    'pods "compute-0" is forbidden: violates PodSecurity "baseline:latest": non-default '
    'capabilities (container "slurmd" must not include "BPF" in securityContext.capabilities.add), '
    'privileged (container "slurmd" must not set securityContext.privileged=true)'
)
RESTRICTED = (
    'pods "compute-0" is forbidden: violates PodSecurity "restricted:v1.34": runAsNonRoot != true '
    '(pod or containers "logfile", "slurmd" must set securityContext.runAsNonRoot=true)'
)


def test_a_privileged_worker_is_told_how_to_do_without() -> None:
    found = finding(BASELINE)
    assert found is not None
    assert found.reason == "PodSecurityRefused"
    assert found.ok is False
    assert 'privileged (container "slurmd" must not set' in found.message
    assert "`privileged: false`" in found.message
    assert "`capabilities: {add: []}`" in found.message


def test_of_a_level_without_root_it_is_told_that_no_worker_fits() -> None:
    found = finding(RESTRICTED)
    assert found is not None
    assert "runAsNonRoot != true" in found.message
    assert "slurmd runs as root" in found.message
    assert "privileged: false" not in found.message


def test_another_refusal_is_not_its_matter() -> None:
    assert finding('pods "compute-0" is forbidden: exceeded quota: pods') is None
