"""Penstock's own marks on objects of any API group, under `penstock.dev`: they must never change.

They have a domain of their own, so that they are never taken for a user's.
"""

from __future__ import annotations

from typing import Final

CORDONED_FOR: Final = "nodeset.penstock.dev/cordoned-for"
"""Why Penstock itself set pod-cordon; without it a pod-cordon is the user's and stays."""
SAME_REVISIONS: Final = "nodeset.penstock.dev/same-revisions"
"""On a ControllerRevision: hashes, separated by commas, that others gave the same template."""
ROLLBACK: Final = "nodeset.penstock.dev/rollback-to"
"""On a NodeSet: each new value has the template of that recorded revision declared again, once."""
ROLLED_BACK: Final = "nodeset.penstock.dev/rolled-back-to"
"""On a NodeSet: the value of ROLLBACK that was done, or reported to be impossible."""
DRAIN_FINALIZER: Final = "nodeset.penstock.dev/drain"
"""Keeps a deleted NodeSet until its nodes are drained and its pods are gone."""
ASK_FINALIZER: Final = "restapi.penstock.dev/drain"
"""Keeps a deleted RestApi while workers of its cluster are drained."""
SLURMD_FAILING: Final = "penstock.dev/SlurmdFailing"
"""Type of a pod condition: slurmd ends again and again; the message has its last words."""
FEATURE_PREFIX: Final = "k8s/"
"""Slurm features that come from an annotation of a Kubernetes node begin with it; all others are
left alone."""
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
CONFIG_DELIVERED_TO: Final = "controller.penstock.dev/config-delivered-to"
"""On slurmctld's pod: restart count of its container when CONFIG_HASH was changed. A process of
that count, or a lower one, was started with other files."""
SLURMDBD: Final = "controller.penstock.dev/slurmdbd"
"""On slurmrestd's pod: host and port of slurmdbd, which it reads only at its start."""
CONFIG_REFRESH: Final = "controller.penstock.dev/config-refresh"
"""On slurmctld's pod: changed when the kubelet is to look at the mounted files once more."""
TRIES_CONFIG: Final = "controller.penstock.dev/tries-config"
"""On slurmctld's pod: its reconfigure container is Penstock's own."""
CONTENT_HASH: Final = "controller.penstock.dev/content-hash"
"""On a ConfigMap with slurm.conf: hash of its data; another one shows an edit by somebody else."""
RECONFIGURE: Final = "controller.penstock.dev/reconfigure"
"""On a Controller: each new value has slurmctld reconfigured once. On its pod: the value to do."""
RESTART: Final = "controller.penstock.dev/restart"
"""On a Controller: each new value (`slurmctld`, `slurmctld@TEXT`) has slurmctld restarted once."""
METRICS: Final = "controller.penstock.dev/metrics"
"""On the one Service by which monitoring is to find slurmctld."""
KEY_RING: Final = "penstock.dev/key-ring"
"""On a pod: it shows several keys of auth/slurm when there are any."""
KEYS: Final = "penstock.dev/keys"
"""On a worker's pod: which keys it is to show; a change has the kubelet refresh them."""
ADOPTED_TEMPLATE: Final = "penstock.dev/adopted-template"
"""On a StatefulSet or Deployment of another operator: hash of the desired pods when its template
was taken over, which stays until that changes; `replacing`, then `replaced` from then on."""
ADOPTED_PODS: Final = "penstock.dev/adopted-pods"
"""On a Controller, Accounting, RestApi, LoginSet or SlurmCluster: REPLACE has pods that another
operator made replaced now."""
ADOPTED_REVISION: Final = "penstock.dev/adopted-revision"
"""On a worker pod of another operator: the hash of its template that the other one gave it."""
REPLACE: Final = "Replace"
DRIFT: Final = "penstock.dev/drift"
"""On a NodeSet or Controller: what becomes of what was changed in Slurm itself, one of DRIFTS."""
DRIFTS: Final = ("Report", "Revert", "Adopt")
"""Report only (the default); also revert the change; or write it into the object."""
