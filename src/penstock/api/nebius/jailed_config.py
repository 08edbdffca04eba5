"""JailedConfig: files of a ConfigMap that are written into the jail."""

from __future__ import annotations

from typing import Annotated, Literal

from penstock.api.kubernetes.meta import KubeObject, KubeStruct
from penstock.api.kubernetes.resource import Resource
from penstock.api.kubernetes.schema import AGE, ATOMIC_LIST, INT32, Column, KindInfo, about
from penstock.api.kubernetes.spec_parts import Status
from penstock.api.nebius.common import GROUP, VERSION


class ConfigMapName(KubeStruct, frozen=True):
    """A ConfigMap of the same namespace."""

    name: Annotated[str, about("Name of the ConfigMap.")]


class KeyToPath(KubeStruct, frozen=True):
    """One file."""

    key: Annotated[str, about("Key within the ConfigMap's data.")]
    path: Annotated[str, about("Absolute path in the jail.")]
    mode: Annotated[int | None, about("Mode of the file.", INT32)] = None


class JailedConfigSpec(KubeStruct, frozen=True, kw_only=True):
    """Which files are written."""

    config_map: Annotated[ConfigMapName, about("The ConfigMap with the files.")]
    default_mode: Annotated[int | None, about("Mode of files; 0644 when absent.", INT32)] = None
    items: Annotated[
        tuple[Annotated[KeyToPath, about("One file.")], ...], about("The files.", ATOMIC_LIST)
    ] = ()
    update_actions: Annotated[
        tuple[Annotated[Literal["Reconfigure"], about("One action.")], ...],
        about("What follows a change, in this order.", ATOMIC_LIST),
    ] = ()


class JailedConfigStatus(Status, frozen=True):
    """Whether the files are written."""


class JailedConfig(KubeObject, frozen=True, kw_only=True):
    """Files of a ConfigMap that are written into the jail."""

    spec: Annotated[JailedConfigSpec, about("Which files are written.")]
    status: Annotated[JailedConfigStatus, about("Whether they are.")] = JailedConfigStatus()


def _reason(type_: str) -> str:
    return f".status.conditions[?(@.type=='{type_}')].reason"


JAILED_CONFIGS = Resource(
    GROUP, VERSION, "JailedConfig", "jailedconfigs", JailedConfig, optional=True
)
INFO = KindInfo(
    JAILED_CONFIGS,
    (),
    (
        Column("Files Written", _reason("FilesWritten")),
        Column("Reconfiguration Status", _reason("UpdateActionsCompleted")),
        Column("Jailed Path", ".spec.items[0].path"),
        Column("Age", AGE.path, "date"),
    ),
)
