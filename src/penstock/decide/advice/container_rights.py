"""Rights that containers of jobs need and a worker's container lacks.

enroot creates a user namespace and mounts in it, so slurmd's container needs the rights for both.
Without them a job fails with EPERM in enroot's output, which the operator does not read. So the
condition is derived from the pod's securityContext.

Sources: enroot's doc/requirements.md (namespaces); capabilities(7), CAP_SYS_ADMIN; containerd's
default profile of seccomp, which denies unshare(2) and mount(2) without that capability, and of
AppArmor, which denies mount(2) in any case; Kubernetes' PodSpec (securityContext).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from penstock.api.kubernetes.conditions import Finding, find
from penstock.api.kubernetes.meta import Condition
from penstock.catalog.condition_type import ConditionType
from penstock.catalog.reasons.workers import WorkerReason

LIMITED = ConditionType.CONTAINERS_LIMITED
"""The condition's type."""
_PROGRAMS = ("pyxis", "enroot")

Json = Mapping[str, Any]


def finding(slurmd: Json, pod: Json, before: Iterable[Condition]) -> Finding | None:
    """Return the condition of a NodeSet whose workers have enroot; None when they never had it.

    `slurmd` is the worker's rendered container and `pod` its pod's spec; `before` are the
    NodeSet's conditions. It does not affect Ready: other jobs run without these rights.
    """
    if not has_enroot(slurmd):
        if find(before, LIMITED) is None:
            return None
        return Finding(True, WorkerReason.NO_ENROOT, type=LIMITED, inverted=True)
    lacking = missing(slurmd, pod)
    if not lacking:
        return Finding(True, WorkerReason.RIGHTS_GIVEN, type=LIMITED, inverted=True)
    message = (
        "Workers have enroot and slurmd is not privileged; jobs with --container-image may fail, "
        f"as spec.slurmd.securityContext lacks: {'; '.join(lacking)}"
    )
    return Finding(True, WorkerReason.RIGHTS_MISSING, message, type=LIMITED)


def has_enroot(slurmd: Json) -> bool:
    """Whether a worker's container is meant to run enroot: by its image's name, or by a mount.

    An image is called after one of the programs (`slurmd-pyxis`), or enroot's settings or cache are
    mounted (`/etc/enroot`, `/var/cache/enroot`).
    """
    image = str(slurmd.get("image") or "").partition("@")[0].rpartition("/")[2].partition(":")[0]
    mounts: list[Json] = slurmd.get("volumeMounts") or []
    folders = [word for one in mounts for word in str(one.get("mountPath")).split("/")]
    return any(one in image for one in _PROGRAMS) or "enroot" in folders


def missing(slurmd: Json, pod: Json) -> list[str]:
    """Return the missing rights, the most important first; none for a privileged container."""
    own, shared = _context(slurmd), _context(pod)
    if own.get("privileged"):
        return []
    found: list[str] = []
    if not _may_administer(own):
        found.append("capability SYS_ADMIN (for mounts)")
        if (seccomp := _profile("seccompProfile", own, shared)) not in (None, "Unconfined"):
            found.append(f"seccompProfile Unconfined ({seccomp} denies namespaces)")
    if _profile("appArmorProfile", own, shared) != "Unconfined":
        found.append("appArmorProfile Unconfined (AppArmor denies mounts where it is enabled)")
    if own.get("allowPrivilegeEscalation") is False:
        found.append("allowPrivilegeEscalation (false voids capabilities of enroot's programs)")
    return found


def _context(of: Json) -> Json:
    return cast("Json", of.get("securityContext") or {})


def _may_administer(context: Json) -> bool:
    capabilities: Json = context.get("capabilities") or {}
    added: list[str] = capabilities.get("add") or []
    return any(one.upper().removeprefix("CAP_") in ("SYS_ADMIN", "ALL") for one in added)


def _profile(name: str, own: Json, shared: Json) -> str | None:
    """A profile's type: the container's before the pod's, None when neither names one."""
    chosen: Json = own.get(name) or shared.get(name) or {}
    return chosen.get("type")
