"""Keys and values that users, pods and slurm-operator's own objects carry: they must never change.

Own marks of Penstock are under `penstock.dev`, so that they are never taken for a user's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

# Workers: what users and other tools say about one pod.
POD_CORDON: Final = "nodeset.slinky.slurm.net/pod-cordon"
"""Exactly `"true"` on a worker pod: drain its Slurm node."""
POD_CORDON_SHORT: Final = "slinky.slurm.net/pod-cordon"
"""Older spelling of POD_CORDON; a node is undrained only when both are gone."""
POD_CORDON_KEYS: Final = (POD_CORDON, POD_CORDON_SHORT)
POD_DELETION_COST: Final = "nodeset.slinky.slurm.net/pod-deletion-cost"
"""A 32 bit number: the pod with the lower one is deleted first."""
POD_DEADLINE: Final = "nodeset.slinky.slurm.net/pod-deadline"
"""RFC 3339: until when jobs may run on the pod's node; written by the operator."""

# Kubernetes Nodes: what administrators say about a machine.
NODE_CORDON_REASON: Final = "nodeset.slinky.slurm.net/node-cordon-reason"
HOSTNAME_OVERRIDE: Final = "nodeset.slinky.slurm.net/hostname-override"
TOPOLOGY: Final = "topology.slinky.slurm.net/spec"
FEATURES: Final = "features.slinky.slurm.net/spec"
FEATURE_PREFIX: Final = "k8s/"
"""Slurm features that come from FEATURES begin with this; all others are left alone."""

# Labels of generated objects.
APP_NAME: Final = "app.kubernetes.io/name"
APP_INSTANCE: Final = "app.kubernetes.io/instance"
APP_COMPONENT: Final = "app.kubernetes.io/component"
COMPONENT: Final = "slinky.slurm.net/component"
"""Older label, whose value is the daemon's name (`slurmd`); new worker pods carry it as well."""
CLUSTER: Final = "slinky.slurm.net/cluster"
CONTROLLER_ACTIVE: Final = "controller.slinky.slurm.net/active"
STATEFUL_SET_POD: Final = "statefulset.kubernetes.io/pod-name"
"""Kubernetes' own, on each pod of a StatefulSet."""
POD_NAME: Final = "nodeset.slinky.slurm.net/pod-name"
POD_INDEX: Final = "nodeset.slinky.slurm.net/pod-index"
POD_HOSTNAME: Final = "nodeset.slinky.slurm.net/pod-hostname"
SCALING_MODE: Final = "nodeset.slinky.slurm.net/scaling-mode"
POD_PROTECT: Final = "nodeset.slinky.slurm.net/pod-protect"
REVISION_HASH: Final = "controller.kubernetes.io/hash"
"""On a worker pod and on its ControllerRevision: hash of the template that the pod is made from."""
FORMER_REVISION_HASH: Final = "controller-revision-hash"
"""The same on worker pods of earlier versions of Penstock. It is read, and written no more."""
METRICS: Final = "controller.penstock.dev/metrics"
"""On the one Service by which monitoring is to find slurmctld."""
TRUE: Final = "true"

# Annotations of generated pods.
DEFAULT_CONTAINER: Final = "kubectl.kubernetes.io/default-container"
SLURM_KEY_HASH: Final = "slinky.slurm.net/slurm-key-hash"
JWT_KEY_HASH: Final = "slinky.slurm.net/jwt-key-hash"
SLURM_CONFIG_HASH: Final = "slinky.slurm.net/slurm-config-hash"
SLURMDBD_CONF_HASH: Final = "slinky.slurm.net/slurmdbd-conf-hash"
SSHD_CONF_HASH: Final = "slinky.slurm.net/sshd-conf-hash"
SSSD_CONF_HASH: Final = "slinky.slurm.net/sssd-conf-hash"
SSH_HOST_KEYS_HASH: Final = "slinky.slurm.net/ssh-host-keys-hash"

RESERVATION_FINALIZER: Final = "nodeset.slinky.slurm.net/reservation"
WORKER_TAINT: Final = "nodeset.slinky.slurm.net/worker"

# Pod conditions that show the Slurm node's state.
NODE_STATE_PREFIX: Final = "SlurmNodeState"
# Ours: slurmd ends again and again, with its last words.
SLURMD_FAILING: Final = "penstock.dev/SlurmdFailing"

# Marks in Slurm itself.
REASON_PREFIX: Final = "slurm-operator: "
"""A drain reason that begins with it is ours; any other one belongs to somebody else."""
RESERVATION_PREFIX: Final = "SlurmOperatorMaint-"
COMMENT_NAMESPACE: Final = "namespace"
COMMENT_POD: Final = "podName"
COMMENT_NODE: Final = "node"
COMMENT_NODESET: Final = "nodeSetName"
COMMENT_NODESET_UID: Final = "nodeSetUID"

NOT_FOR_SLURMD: Final = ("comment", "extra")
"""Words of a NodeSet's extraConf that slurmctld keeps of a node and slurmd's `--conf` refuses."""

# Penstock's own marks.
CORDONED_FOR: Final = "nodeset.penstock.dev/cordoned-for"
"""Why Penstock itself set pod-cordon; without it a pod-cordon is the user's and stays."""
SAME_REVISIONS: Final = "nodeset.penstock.dev/same-revisions"
"""On a ControllerRevision: hashes, separated by commas, that others gave the same template."""
ROLLBACK: Final = "nodeset.penstock.dev/rollback-to"
"""On a NodeSet: each new value has the template of that recorded revision declared again, once."""
ROLLED_BACK: Final = "nodeset.penstock.dev/rolled-back-to"
"""On a NodeSet: the value of ROLLBACK that was done, or told to be impossible."""
ASK_FINALIZER: Final = "restapi.penstock.dev/drain"
DRAIN_FINALIZER: Final = "nodeset.penstock.dev/drain"
"""Keeps a deleted NodeSet until its nodes are drained and its pods are gone."""
CONFIG_HASH: Final = "controller.penstock.dev/config-hash"
"""Hash of the configuration; changing it on a pod makes the kubelet refresh the mounted files."""
JWKS_HASH: Final = "penstock.dev/jwks-hash"
"""On slurmdbd's pod: hash of the JWKS file, which is read once."""
CONFIG_CANDIDATE: Final = "controller.penstock.dev/config-candidate"
"""On slurmctld's pod: hash of the configuration that its reconfigure container is to try."""
CONFIG_LIVE: Final = "controller.penstock.dev/config-live"
"""On slurmctld's pod: hash of the configuration that needs no reconfigure."""
CONFIG_RESTART: Final = "controller.penstock.dev/config-restart"
"""On slurmctld's pod: hash of the configuration that takes effect by a restart only."""
CONFIG_REFUSED: Final = "controller.penstock.dev/config-refused"
"""On the ConfigMap that slurmctld reads: hashes, separated by commas, of a configuration with
which it did not come up, a blank, and its words."""
CONFIG_REFRESH: Final = "controller.penstock.dev/config-refresh"
"""On slurmctld's pod: changed when the kubelet is to look at the mounted files once more."""
RECONFIGURE: Final = "controller.penstock.dev/reconfigure"
"""On a Controller: each new value has slurmctld reconfigured once. On its pod: the value to do."""
RESTART: Final = "controller.penstock.dev/restart"
RESTART_TRIGGER: Final = "restart-trigger"
"""That of slurm-operator's documentation: any value restarts slurmctld."""
"""On a Controller: each new value (`slurmctld`, `slurmctld@TEXT`) has slurmctld restarted once."""
KEY_RING: Final = "penstock.dev/key-ring"
"""On a pod: it shows several keys of auth/slurm when there are any."""
KEYS: Final = "penstock.dev/keys"
"""On a worker's pod: which keys it is to show; a change has the kubelet refresh them."""
TRIES_CONFIG: Final = "controller.penstock.dev/tries-config"
"""On slurmctld's pod: its reconfigure container is Penstock's own."""
ADOPTED_TEMPLATE: Final = "penstock.dev/adopted-template"
"""On a StatefulSet or Deployment of another operator: hash of what was declared when its template
was taken over, which stays until that changes; `replacing`, then `replaced` from then on."""
ADOPTED_PODS: Final = "penstock.dev/adopted-pods"
"""On a Controller, Accounting, RestApi or LoginSet: REPLACE has pods that another operator made
replaced now."""
REPLACE: Final = "Replace"
CHART_LABELS: Final = ("helm.sh/chart", "app.kubernetes.io/version")
"""Labels that change with each release of a chart. A pod has them, its template does not."""
HELM_POLICY: Final = "helm.sh/resource-policy"
HELM_KEEP: Final = "keep"
"""Of HELM_POLICY: Helm does not delete the object when a release has it no more."""
CONTENT_HASH: Final = "controller.penstock.dev/content-hash"
"""On a ConfigMap with slurm.conf: hash of its data; another one shows an edit by somebody else."""
DRIFT: Final = "penstock.dev/drift"
"""On a NodeSet or Controller: what becomes of what was changed in Slurm itself, one of DRIFTS."""
DRIFTS: Final = ("Report", "Revert", "Adopt")
"""Told (so when nothing is chosen); put back as well; or written into the object."""

# Ports and users of the daemons.
SLURMCTLD_PORT: Final = 6817
SLURMD_PORT: Final = 6818
SLURMDBD_PORT: Final = 6819
SLURMRESTD_PORT: Final = 6820
SSH_PORT: Final = 22
SLURM_UID: Final = 401
SLURMRESTD_UID: Final = 65534

# app.kubernetes.io/name -> app.kubernetes.io/component
COMPONENTS: Final = {
    "slurmctld": "controller",
    "slurmrestd": "restapi",
    "slurmdbd": "accounting",
    "slurmd": "worker",
    "login": "login",
}


def selector_labels(name: str, instance: str) -> dict[str, str]:
    """What a Service or workload selects by: the daemon's name and the owning object's."""
    return {APP_INSTANCE: instance, APP_NAME: name}


def labels(name: str, instance: str) -> dict[str, str]:
    """Labels of a generated object: the selector's and the component."""
    return {APP_COMPONENT: COMPONENTS[name], **selector_labels(name, instance)}


def worker_labels(nodeset: str, cluster: str) -> dict[str, str]:
    """Labels that all worker pods of a NodeSet have; `cluster` is its Controller's name."""
    return {**labels("slurmd", nodeset), CLUSTER: cluster, COMPONENT: "slurmd"}


def revision_hash(labels: Mapping[str, str]) -> str | None:
    """Hash of the template that a worker pod was made from; None without a label that has it."""
    found = labels.get(REVISION_HASH)
    return labels.get(FORMER_REVISION_HASH) if found is None else found


def pod_cordoned(annotations: dict[str, str]) -> bool:
    """Whether a pod's annotations ask for a drain, in either spelling."""
    return any(annotations.get(key) == TRUE for key in POD_CORDON_KEYS)
