"""Fields that only a container, or only a pod spec, has.

Source: Kubernetes API reference 1.36, Container and PodSpec v1.
"""

from __future__ import annotations

from typing import Final


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
