"""Privileges of each container, from the rendered pods of tests/golden.

`privilege_needs.py` has the reason for each.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final, cast

import yaml

from penstock.api.kubernetes.meta import Json
from penstock.api.nebius.labels import CHECKS
from reference.page import Page, code, table
from reference.privilege_needs import NEBIUS, NEEDS, ROOT_USER, SLINKY
from reference.source import ROOT

_GOLDEN: Final = ROOT / "tests/golden"
_OF_USERS: Final = frozenset({"exporter of slurmd", "pod-node-exporter of controller"})
"""Containers that the declarations of the goldens add themselves."""
_RESTRICTED: Final = """Namespaces of the level `restricted` admit slurmctld and slurmrestd of
`slinky.slurm.net` with these fields of Controller (slurmctld, reconfigure, logfile) and RestApi
(slurmrestd):

```yaml
slurmctld: {securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}
template: {spec: {securityContext: {seccompProfile: {type: RuntimeDefault}}}}
```
"""


@dataclass(frozen=True)
class Privileges:
    """What a container of an API has; `of` is its pod's component."""

    api: str
    of: str
    container: str
    user: str
    always: frozenset[str]
    sometimes: frozenset[str]

    def joined(self, other: Privileges) -> Privileges:
        """The same container in another pod."""
        always = self.always & other.always
        every = self.always | self.sometimes | other.always | other.sometimes
        return replace(self, always=always, sometimes=every - always)

    @property
    def has(self) -> str:
        """Its privileges; those that depend on the declaration have a star."""
        starred = {*self.always, *(f"{one} *" for one in self.sometimes)}
        return ", ".join(map(code, sorted(starred)))

    @property
    def reason(self) -> str:
        """Why it has something; raises KeyError where no reason is given."""
        by_reason: dict[str, list[str]] = {}
        for one in self.items:
            if reason := NEEDS[self.api, self.container][one].reason:
                by_reason.setdefault(reason, []).append(one)
        if len(by_reason) < 2:
            return "".join(by_reason)
        return "; ".join(
            f"{', '.join(map(code, items))}: {reason}" for reason, items in by_reason.items()
        )

    @property
    def items(self) -> list[str]:
        """Each privilege without a star, and the user root of a declaration."""
        root = [ROOT_USER] if self.user == "0" else []
        return [*sorted(self.always | self.sometimes), *root]


def rows() -> list[Privileges]:
    """Containers of both APIs in their order."""
    every: dict[tuple[str, ...], Privileges] = {}
    for one in _rendered():
        key = (one.api, one.of, one.container, one.user)
        every[key] = every[key].joined(one) if key in every else one
    return [one for _, one in sorted(every.items())]


def page() -> Page:
    """One table for each API."""
    parts = [
        "For security reviewers. From the pods that the operator renders; declarations of yours "
        "may add more. *Image* is the user of the image: root in Penstock's, unless the pod names "
        "one. Root has the runtime's default capabilities. With a star: depends on the "
        "declaration. How to admit pods: "
        "[rights](../platform/rights.md).\n"
    ]
    parts.append(_RESTRICTED)
    for api in (SLINKY, NEBIUS):
        cells = [
            (one.of, code(one.container), one.user, one.has, one.reason)
            for one in rows()
            if one.api == api
        ]
        parts += [
            f"## {api}\n",
            table(("Pod", "Container", "User", "Beyond the default", "Reason"), cells),
            "",
        ]
    return Page(
        "privileges", "Privileges of containers", "privileges of containers", "\n".join(parts)
    )


def _rendered() -> Iterator[Privileges]:
    for path in sorted(_GOLDEN.glob("*.yaml")):
        api = NEBIUS if path.name.startswith("slurmcluster") else SLINKY
        for one in yaml.safe_load_all(path.read_text()):
            if one and (found := _pod(one)) is not None:
                yield from _containers(api, *found)


def _pod(one: Any) -> tuple[dict[str, str], Any] | None:
    """Labels and spec of the pod of an object."""
    spec = cast("Json", one.get("spec") or {})
    match one["kind"]:
        case "Pod":
            meta, found = one["metadata"], spec
        case "CronJob":
            inner: Json = spec["jobTemplate"]["spec"]["template"]
            meta, found = inner["metadata"], inner["spec"]
        case "StatefulSet" | "Deployment" | "Job":
            template: Json = spec["template"]
            meta, found = template["metadata"], template["spec"]
        case _:
            return None
    return meta.get("labels") or {}, found


def _containers(api: str, labels: dict[str, str], spec: Any) -> Iterator[Privileges]:
    key = "name" if api == SLINKY else "component"
    of = labels.get(f"app.kubernetes.io/{key}", "")
    of = {"nodeset": "worker", CHECKS: "check"}.get(of, of)
    whole = cast("dict[str, Any]", spec.get("securityContext") or {})
    for one in (*spec.get("initContainers", ()), *spec["containers"]):
        if f"{one['name']} of {of}" in _OF_USERS:
            continue
        name = "check" if of == "check" and one["name"] != "munge" else one["name"]
        own = cast("dict[str, Any]", one.get("securityContext") or {})
        user = own.get("runAsUser", whole.get("runAsUser"))
        yield Privileges(
            api,
            of,
            name,
            "image" if user is None else str(user),
            frozenset([*_beyond(own), *_of_host(spec, one)]),
            frozenset(),
        )


def _beyond(context: Any) -> Iterator[str]:
    if context.get("privileged"):
        yield "privileged"
    yield from sorted(context.get("capabilities", {}).get("add") or ())
    if context.get("seccompProfile", {}).get("type") == "Unconfined":
        yield "seccomp Unconfined"
    if context.get("procMount") == "Unmasked":
        yield "procMount Unmasked"


def _of_host(spec: Any, container: Any) -> Iterator[str]:
    """Folders of the Kubernetes node that a container mounts."""
    paths = {
        one["name"]: one["hostPath"]["path"] for one in spec.get("volumes", ()) if "hostPath" in one
    }
    for one in container.get("volumeMounts", ()):
        if one["name"] in paths:
            yield f"host {paths[one['name']]}"
