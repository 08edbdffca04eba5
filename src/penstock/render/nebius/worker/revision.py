"""The template of a worker set: which pods are made from the current one.

A ControllerRevision records the declared fields. What a newer operator renders differently is not
among them, so it replaces no pod. Fields that reach no pod have no meaning here: counts, update
strategy, PVC retention, and the size of a PVC that exists already.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final, cast

from penstock.api.cluster.marks import SAME_REVISIONS
from penstock.api.kubernetes.kinds import ControllerRevision
from penstock.api.kubernetes.meta import Json, ObjectMeta
from penstock.api.kubernetes.quantity import quantity
from penstock.api.nebius import labels, names
from penstock.api.nebius.nodeset import NodeSet
from penstock.model.recorded_revision import RecordedRevision
from penstock.model.worker_set import WorkerSet
from penstock.render.nebius.inputs import ClusterInputs
from penstock.render.nebius.pod import filter_place
from penstock.render.nebius.worker.template import worker_template
from penstock.render.parts import empty_values as empty
from penstock.render.parts.digest import canonical_json, revision_hash
from penstock.render.parts.plain import plain
from penstock.render.parts.revision import Revision, record
from penstock.slurm.node_parameters import fixed_words

_TEMPLATE: Final = "volumeClaimTemplateSpec"
_OF_NO_POD: Final = frozenset(
    {
        "clusterName",
        "replicas",
        "size",
        "maxUnavailable",
        "updateStrategy",
        "ephemeralNodes",
        "initialNumberEphemeralNodes",
        "ephemeralTopologyWaitTimeout",
        "workerInitRandomDelaySeconds",
        "waitForController",
        "rebooter",
        "persistentVolumeClaimRetentionPolicy",
        "topology",
        "docker",
        "sshd",
        "supervisord",
        "nodeAttributes",
    }
)
"""Fields at the top of a NodeSet's spec or of spec.slurmNodes.worker that reach no pod."""
_OF_SSSD: Final = frozenset(
    {"sssdDebugLevel", "sssdConfSecretRefName", "sssdLdapCAConfigMapRefName"}
)
"""Fields that reach no pod either while there is no `sssd`."""
_LIVE_OR_FILES: Final = ("features", "static", "gresConfig", "autoResume")
"""Fields of nodeConfig that are words of the Slurm node or lines of files."""


def revision(cluster: ClusterInputs, workers: WorkerSet) -> Revision:
    """The revision that pods should have."""
    data = _declared(cluster, workers)
    label = revision_hash(_form(data))
    return Revision(label, f"{_prefix(workers)}{label}", data)


def controller_revision(
    cluster: ClusterInputs, workers: WorkerSet, of: Revision, number: int
) -> Json:
    """The ControllerRevision that records `of` as the `number`-th of the worker set."""
    template = worker_template(cluster, workers)
    found = {
        **labels.object_labels(template.component, workers.cluster),
        **workers.selector,
        labels.REVISION: of.hash,
    }
    return record(template.declared_by, of, number, found)


def declared_revision(cluster: ClusterInputs, workers: WorkerSet) -> RecordedRevision:
    """As `revision`, in the form that decisions read."""
    found = revision(cluster, workers)
    meta = ObjectMeta(name=found.name)
    return recorded_revision(workers, ControllerRevision(metadata=meta, data=found.data))


def recorded_revision(workers: WorkerSet, of: ControllerRevision) -> RecordedRevision:
    """The template that a ControllerRevision of a worker set records."""
    data, meta = of.data, of.metadata
    parameters, same = str(data.get("parameters") or ""), meta.annotations.get(SAME_REVISIONS, "")
    return RecordedRevision(
        name=meta.name,
        uid=meta.uid,
        number=of.revision,
        hash=meta.name.removeprefix(_prefix(workers)),
        equal_hashes=tuple(sorted(filter(None, same.split(",")))),
        parameters=parameters,
        fixed_form=_form({**data, "parameters": fixed_words(parameters)}),
        read_form=partial(_form, data),
        read_spec=lambda: cast("Json | None", data.get("spec")),
    )


def _prefix(workers: WorkerSet) -> str:
    """Beginning of the names of its ControllerRevisions, which no other cluster has."""
    return f"{workers.cluster}-{workers.names.pod_prefix}"


def _declared(cluster: ClusterInputs, workers: WorkerSet) -> Json:
    of = worker_template(cluster, workers)
    parts: Json = {"sshdKeys": names.sshd_keys_secret(cluster.cluster)}
    if not cluster.spec.has_munge:
        parts["authType"] = cluster.spec.auth_type
    if isinstance(of.declared_by, NodeSet):
        given: Any = of.declared_by.spec
        parts["cgroupVersion"] = cluster.spec.cgroup_version
    else:
        worker = given = cluster.spec.slurm_nodes.worker
        parts["clusterType"] = cluster.cluster_type
        parts["place"] = filter_place(cluster.spec, worker.k8s_node_filter_name if worker else "")
        parts["features"] = [
            {"name": one.name, "hostlistExpr": one.hostlist_expr}
            for one in cluster.spec.worker_features
        ]
        parts["volumes"] = {one.name: one.source for one in of.volumes if one.template is None}
    fields = plain(given)
    return {
        "spec": {name: value for name, value in fields.items() if _reaches_pod(name, fields)},
        "parameters": workers.parameters,
        "cluster": parts,
    }


def _form(data: Json) -> bytes:
    """The meaning of recorded data: equal bytes for pods that are the same.

    Data of another operator mean themselves.
    """
    spec: Any = data.get("spec")
    if not isinstance(spec, dict):
        return canonical_json(data)
    meaning = {**data, "spec": _meaning(cast("Json", spec))}
    return canonical_json(empty.said(meaning))


def _meaning(spec: Json) -> Json:
    found: Json = {
        name: _plain(value)
        for name, value in spec.items()
        if _reaches_pod(name, spec) and name != "k8sNodeFilterName"
    }
    config: Json = found.get("nodeConfig") or {}
    found["nodeConfig"] = {k: v for k, v in config.items() if k not in _LIVE_OR_FILES}
    return found


def _reaches_pod(name: str, spec: Json) -> bool:
    return name not in _OF_NO_POD and (name not in _OF_SSSD or bool(spec.get("sssd")))


def _plain(value: Any, *, under: str = "") -> Any:
    """The value with amounts as numbers, and without what makes no difference to a pod."""
    if isinstance(value, dict):
        fields = cast("Json", value)
        if under == "resources":
            return {name: _amount(one) for name, one in fields.items()}
        return {
            # PVCs are created from a template once, and the pod has only their names.
            name: True if name == _TEMPLATE else _plain(one, under=name)
            for name, one in fields.items()
            if name != "procMount"
        }
    if isinstance(value, list):
        return [_plain(one) for one in cast("list[Any]", value)]
    return value


def _amount(value: Any) -> Any:
    try:
        return str(quantity(value))
    except (ValueError, TypeError):
        return value
