"""`pinToNode`: the Kubernetes node to which the pod of an ordinal returns.

It is the one that the pod ran on; the status remembers it while the pod is away, also while the
ordinal is scaled in. It is forgotten when the machine is gone or cannot have the pod any more, and
when the option is off.
"""

from __future__ import annotations

from penstock.api.slinky.names import ordinal_of
from penstock.decide.daemon import is_daemon
from penstock.decide.fit import Fit, fit, wishes
from penstock.decide.view import NodeSetView


def pins(view: NodeSetView) -> dict[str, str]:
    """Machine by ordinal. `view.kubernetes_nodes` needs the machines that the status names."""
    spec = view.nodeset.spec
    if not spec.pin_to_node or spec.scaling_mode != "StatefulSet":
        return {}
    wished = wishes(view.nodeset)
    found: dict[str, str] = {}
    for ordinal, name in view.nodeset.status.ordinal_to_node.items():
        machine = view.kubernetes_nodes.get(name)
        # A template that is written wrong says nothing about any machine.
        if machine is not None and (wished is None or fit(wished, machine) is not Fit.NOT):
            found[ordinal] = name
    for pod in view.pods:
        ordinal = ordinal_of(view.nodeset, pod.metadata.name)
        name, runs = pod.spec.node_name, pod.status.phase == "Running"
        if name and ordinal is not None and runs and not is_daemon(pod):
            found[str(ordinal)] = name
    return dict(sorted(found.items(), key=lambda one: int(one[0])))
