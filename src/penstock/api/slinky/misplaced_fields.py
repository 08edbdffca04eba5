"""Fields of a container that stand in a pod spec, and the other way round.

The schema leaves containers and pod specs open, so the API server keeps such a field, and nothing
reads it there. Source: Kubernetes API reference 1.36, Container and PodSpec v1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from penstock.api.kubernetes.meta import Json
from penstock.api.kubernetes.spec_parts import PodTemplate


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


OF_CONTAINERS: Final = _names(
    "args command env envFrom image imagePullPolicy lifecycle livenessProbe ports readinessProbe "
    "resizePolicy restartPolicyRules startupProbe stdin stdinOnce terminationMessagePath "
    "terminationMessagePolicy tty volumeDevices volumeMounts workingDir"
)
"""Fields of a container that no pod spec has."""
OF_PODS: Final = _names(
    "activeDeadlineSeconds affinity automountServiceAccountToken containers dnsConfig dnsPolicy "
    "enableServiceLinks ephemeralContainers hostAliases hostIPC hostNetwork hostPID hostUsers "
    "hostname hostnameOverride imagePullSecrets initContainers nodeName nodeSelector os overhead "
    "preemptionPolicy priority priorityClassName readinessGates resourceClaims runtimeClassName "
    "schedulerName schedulingGates serviceAccount serviceAccountName setHostnameAsFQDN "
    "shareProcessNamespace subdomain terminationGracePeriodSeconds tolerations "
    "topologySpreadConstraints volumes"
)
"""Fields of a pod spec that no container has."""
_POD: Final = "spec.template.spec"
_HOLLOW: Final[tuple[Any, ...]] = (None, "", {}, [])


def misplaced(containers: Mapping[str, Json], template: PodTemplate) -> Iterator[str]:
    """`path: where it belongs` for each field of this kind that asks for something.

    `containers` are those of the spec by field; the first one is the daemon's.
    """
    for name, container in containers.items():
        yield from _in_container(f"spec.{name}", container)
    main = next(iter(containers))
    for field in _given(template.spec, OF_CONTAINERS):
        yield (
            f"{_POD}.{field}: not used, a pod has no such field; move it into its container, "
            f"spec.{main}.{field}"
        )
    for kind in ("initContainers", "containers"):
        listed: Any = template.spec.get(kind)
        for index, one in enumerate(cast("list[Any]", listed) if isinstance(listed, list) else ()):
            yield from _in_container(f"{_POD}.{kind}[{index}]", one)


def _in_container(path: str, container: Any) -> Iterator[str]:
    for field in _given(container, OF_PODS):
        yield (
            f"{path}.{field}: not used, a container has no such field; move it to {_POD}.{field}"
        )


def _given(value: Any, fields: frozenset[str]) -> list[str]:
    """The fields that are there and ask for something, in the order written."""
    if not isinstance(value, dict):
        return []
    there = cast("Json", value)
    return [name for name, given in there.items() if name in fields and given not in _HOLLOW]
