"""Containers, as the fields that all containers of a SlurmCluster share declare them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from penstock.api.kubernetes.meta import Json
from penstock.api.nebius.common import UNCONFINED, NodeContainer
from penstock.api.nebius.nodeset import WorkerContainer
from penstock.api.nebius.slurmcluster import SlurmClusterSpec
from penstock.render.parts import empty_values as empty
from penstock.render.parts import merge

SYS_ADMIN: Final = "SYS_ADMIN"
_LOCALHOST: Final = "localhost/"
_RUNTIME_DEFAULT: Final = "runtime/default"
_CPU: Final = "cpu"


def container(
    name: str,
    given: NodeContainer,
    *,
    mounts: Iterable[Json],
    env: Iterable[Json] = (),
    port: int | None = None,
    security: Json | None = None,
    probes: Mapping[str, Json] | None = None,
    is_guaranteed: bool = False,
) -> Json:
    """A container of that name with the declared fields.

    `port` is named like the container. `env` and `probes` are the operator's own; a declared
    variable or probe of the same name replaces one. Limits are the requests without cpu; with it
    where the container `is_guaranteed`.
    """
    declared: Json = {
        "livenessProbe": given.liveness_probe,
        "readinessProbe": given.readiness_probe,
    }
    out: Json = {
        "name": name,
        "image": given.image,
        "imagePullPolicy": given.image_pull_policy,
        # The status shows the last words of a daemon that ended.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        **(probes or {}),
        **{field: found for field, probe in declared.items() if (found := empty.said(probe or {}))},
    }
    out["volumeMounts"] = list(mounts)
    if given.command:
        out["command"] = list(given.command)
    if given.args:
        out["args"] = list(given.args)
    if every := merge.by_key(env, merge.items(given.custom_env), "name"):
        out["env"] = every
    if port is not None:
        out["ports"] = [{"name": name, "containerPort": port, "protocol": "TCP"}]
    if found := _resources(given.resources, is_guaranteed=is_guaranteed):
        out["resources"] = found
    if context := {**(security or {}), **app_armor(given.app_armor_profile)}:
        out["securityContext"] = context
    return out


def worker_container(given: WorkerContainer, env: Sequence[Json] = ()) -> NodeContainer:
    """A NodeSet's container in the form that those of a SlurmCluster have."""
    return NodeContainer(
        image=given.image.reference,
        custom_env=tuple(env),
        image_pull_policy=given.image.pull_policy,
        resources=given.resources,
        liveness_probe=given.liveness_probe,
        readiness_probe=given.readiness_probe,
        app_armor_profile=given.security.app_armor_profile,
    )


def capabilities(*names: str) -> Json:
    """A security context with these capabilities beside those of the container runtime."""
    return {"capabilities": {"add": list(names)}}


def jail_security() -> Json:
    """The security context of a container that completes the jail and has users in it.

    Profiles of container runtimes forbid pivot_root, so seccomp is off.
    """
    return {**capabilities(SYS_ADMIN), "seccompProfile": {"type": "Unconfined"}}


def jail_variables(spec: SlurmClusterSpec) -> list[Json]:
    """The variable by which the entry points of images do without a jail."""
    return [] if spec.has_jail else [variable("JAIL_MODE", spec.jail_mode)]


def variable(name: str, value: str) -> Json:
    """An environment variable. The API server does not store an empty value."""
    return {"name": name, "value": value} if value else {"name": name}


def field_variable(name: str, path: str) -> Json:
    """An environment variable with a field of the pod."""
    # The API server adds the version, so a manifest without it would differ from the live object.
    source = {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}
    return {"name": name, "valueFrom": source}


def _resources(requests: Mapping[str, int | str] | None, *, is_guaranteed: bool) -> Json:
    if not requests:
        return {}
    limits = {name: most for name, most in requests.items() if is_guaranteed or name != _CPU}
    found: dict[str, Any] = {"requests": dict(requests), "limits": limits}
    return {kind: amounts for kind, amounts in found.items() if amounts}


def app_armor(profile: str) -> Json:
    """The AppArmor profile; none for an empty text. Any other text names one of the node."""
    if not profile:
        return {}
    if profile == UNCONFINED:
        return {"appArmorProfile": {"type": "Unconfined"}}
    if profile == _RUNTIME_DEFAULT:
        return {"appArmorProfile": {"type": "RuntimeDefault"}}
    name = profile.removeprefix(_LOCALHOST)
    return {"appArmorProfile": {"type": "Localhost", "localhostProfile": name}}
