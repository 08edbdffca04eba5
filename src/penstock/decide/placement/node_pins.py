"""`pinToNode`: the Kubernetes node to which the pod of an ordinal returns.

It is the one that the pod ran on; the status remembers it while the pod is away, also while the
ordinal is scaled in. It is forgotten when the machine is gone or cannot have the pod any more, and
when the option is off.
"""

from __future__ import annotations

from collections.abc import Mapping

from penstock.decide.observed.pod import is_daemon
from penstock.decide.observed.view import WorkerSetView
from penstock.decide.placement.node_fit import NodeFit, evaluate


def pins(view: WorkerSetView) -> Mapping[str, str]:
    """Machine by ordinal. `view.kubernetes_nodes` needs the machines that the status names."""
    workers = view.workers
    if not workers.pin_to_node or workers.per_node:
        return {}
    told, machines = workers.last.ordinal_to_node, view.kubernetes_nodes
    runs: dict[str, str] = {}
    for pod in view.pods:
        name = pod.spec.node_name
        if name and pod.status.phase == "Running" and not is_daemon(workers.marks, pod):
            ordinal = workers.names.ordinal_of(pod.metadata.name)
            if ordinal is not None:
                runs[str(ordinal)] = name
    if runs == told:
        # Nearly always, and there may be thousands.
        return told
    wished = workers.placement
    found: dict[str, str] = {}
    for ordinal, name in told.items():
        machine = machines.get(name)
        # A template that is written wrong says nothing about any machine.
        if machine is not None and (wished is None or evaluate(wished, machine) is not NodeFit.NOT):
            found[ordinal] = name
    return dict(sorted((found | runs).items(), key=lambda one: int(one[0])))
