"""Keys of the PartitionName line: the meaning of a value, and its form in slurmrestd's API.

A value in its one canonical form is text: `UNLIMITED`, minutes, `YES`, a sorted list. Values that
no row can read, and keys that slurmrestd cannot change, are left to the file.
Source: slurm.conf(5); slurmrestd OpenAPI v0.0.45, `partition_info`, each key set, read and put back
on slurmctld 26.05.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from penstock.slurm import hostlist
from penstock.slurm.rest.wire import Number, Partition

Body = dict[str, Any]
UNLIMITED: Final = "UNLIMITED"
NONE: Final = "NONE"
GLOBAL: Final = "GLOBAL"
_NO_LIMIT = frozenset({"UNLIMITED", "INFINITE", "-1"})
_TIME = re.compile(r"(?:(\d+)-)?(\d+)(?::(\d+))?(?::(\d+))?\Z")
_YES = frozenset({"yes", "y", "true", "t", "1"})
_NO = frozenset({"no", "n", "false", "f", "0"})


@dataclass(frozen=True, slots=True)
class Row:
    """One key. `read` raises ValueError for a value that it does not know.

    `body` is None for a key that slurmrestd cannot set, `live` for one that it does not show; with
    `undo` False a key cannot return to `absent` once it is set. `live` gives None when this
    version of slurmrestd omits the key.
    """

    key: str
    absent: str
    read: Callable[[str], str]
    body: Callable[[str], Body] | None = None
    live: Callable[[Partition], str | None] | None = None
    undo: bool = True


def canonical(keys: Mapping[str, str]) -> dict[str, str]:
    """Values by the lower-case keys of `ROWS`, aliases resolved, what is absent filled in.

    Keys of which nothing is known stay as they are. Raises ValueError, naming key and value.
    """
    found = {row.key.lower(): row.absent for row in ROWS}
    for key, value in resolved(dict(keys)).items():
        row = BY_KEY.get(key)
        try:
            found[key] = value if row is None else row.read(value)
        except ValueError as error:
            raise ValueError(f"{row.key if row else key}={value}") from error
    return found


def resolved(keys: dict[str, str]) -> dict[str, str]:
    """Older spellings as the keys that they set, in lower case; changes what it is given.

    Source: slurm.conf(5) and slurmctld's answers.
    """
    if (both := keys.pop("priority", None)) is not None:
        keys |= {"priorityjobfactor": both, "prioritytier": both}
    if (shared := keys.pop("shared", None)) is not None:
        keys.setdefault("oversubscribe", shared)
    for key, value in (("exclusiveuser", "USER"), ("exclusivetopo", "TOPO")):
        if (given := keys.pop(key, None)) is not None and _flag(given) == "YES":
            keys.setdefault("exclusive", value)
    if keys.get("oversubscribe", "").upper() == "EXCLUSIVE":
        del keys["oversubscribe"]
        keys.setdefault("exclusive", "NODE")
    jobs = [
        f"{name}={keys.pop(name.lower())}"
        for name in ("DefCpuPerGPU", "DefMemPerGPU")
        if name.lower() in keys
    ]
    if jobs:
        keys["jobdefaults"] = ",".join(jobs)
    return keys


def _text(value: str) -> str:
    return value


def _lower(value: str) -> str:
    return value.lower()


def _flag(value: str) -> str:
    if value.lower() not in _YES | _NO:
        raise ValueError(value)
    return "YES" if value.lower() in _YES else "NO"


def _names(value: str) -> str:
    if value.upper() == "ALL":
        return "ALL"
    return ",".join(sorted(filter(None, value.split(","))))


def _lower_names(value: str) -> str:
    return _names(value.lower())


def _hosts(value: str) -> str:
    if value.upper() == "ALL" or not value:
        return "ALL"
    return hostlist.compress(hostlist.expand(value))


def _number(value: str) -> str:
    return str(int(value))


def _count(value: str) -> str:
    return UNLIMITED if value.upper() in _NO_LIMIT else str(int(value))


def _minutes(value: str) -> str:
    """A time as slurm.conf has it, in minutes, rounded up."""
    if value.upper() in _NO_LIMIT:
        return UNLIMITED
    found = _TIME.match(value)
    if found is None:
        raise ValueError(value)
    days, first, second, third = (int(part) if part else 0 for part in found.groups())
    if found[1] is not None:
        seconds = ((days * 24 + first) * 60 + second) * 60 + third
    elif found[4] is not None:
        seconds = (first * 60 + second) * 60 + third
    else:
        seconds = first * 60 + second
    return str((seconds + 59) // 60)


def _memory(value: str) -> str:
    found = _count(value)
    return UNLIMITED if found == "0" else found


def _shares(value: str) -> str:
    word, _, count = value.upper().partition(":")
    if word == "NO" and not count:
        return "NO"
    if word not in ("YES", "FORCE"):
        raise ValueError(value)
    return f"{word}:{int(count or 4)}"


def _one_of(*words: str) -> Callable[[str], str]:
    def read(value: str) -> str:
        if value.upper() not in words:
            raise ValueError(value)
        return value.upper()

    return read


def _cpu_bind(value: str) -> str:
    word = value.lower().rstrip("s")
    if word not in _BINDS:
        raise ValueError(value)
    return word


_BINDS = {
    "none": "CPU_BIND_NONE",
    "socket": "CPU_BIND_TO_SOCKETS",
    "ldom": "CPU_BIND_TO_LDOMS",
    "core": "CPU_BIND_TO_CORES",
    "thread": "CPU_BIND_TO_THREADS",
    "off": "CPU_BIND_OFF",
}
_PREEMPT = {"OFF": "DISABLED", "CANCEL": "CANCEL", "REQUEUE": "REQUEUE", "SUSPEND": "SUSPEND"}


def _at(*path: str) -> Callable[[str], Body]:
    """A body with the text at that path."""
    return lambda value: _nested(path, value)


def _nested(path: tuple[str, ...], value: Any) -> Body:
    for name in reversed(path):
        value = {name: value}
    return value


def _limit(*path: str) -> Callable[[str], Body]:
    return lambda value: _nested(path, _wire(value))


def _int(*path: str) -> Callable[[str], Body]:
    return lambda value: _nested(path, int(value))


def _wire(value: str) -> Body:
    unlimited = value == UNLIMITED
    number = 0 if unlimited else int(value)
    return {"set": not unlimited, "infinite": unlimited, "number": number}


T = TypeVar("T")


def _if(read: Callable[[T], str], value: T | None) -> str | None:
    """Read a value; None if slurmrestd omits it."""
    return None if value is None else read(value)


def _shown(number: Number) -> str:
    found = number.value()
    return UNLIMITED if number.infinite else NONE if found is None else str(found)


def _shown_memory(number: Number) -> str:
    return str(number.value() or UNLIMITED)


def _memory_body(place: str, what: str) -> Callable[[str], Body]:
    """Memory is one value in slurmctld, for each CPU or for each node: none is 0 for each node."""

    def body(value: str) -> Body:
        name = "partition_memory_per_node" if value == UNLIMITED else f"partition_memory_per_{what}"
        number = 0 if value == UNLIMITED else int(value)
        return {place: {name: {"set": True, "infinite": False, "number": number}}}

    return body


def _flag_row(key: str, flag: str) -> Row:
    return Row(
        key,
        "NO",
        _flag,
        lambda value: {"flags": [flag if value == "YES" else f"{flag}_CLEAR"]},
        lambda live: _if(lambda flags: "YES" if flag in flags else "NO", live.flags),
    )


def _shown_preempt(modes: tuple[str, ...]) -> str:
    if "CLUSTER_GLOBAL" in modes:
        return GLOBAL
    names = {theirs: ours for ours, theirs in _PREEMPT.items()}
    return ",".join(names.get(mode, mode) for mode in modes)


def _shown_bind(live: Partition) -> str | None:
    found = live.cpus.task_binding
    if found is None or isinstance(found, int):
        # The number has flags in it that slurm.conf has no words for.
        return None
    names = {theirs: ours for ours, theirs in _BINDS.items()}
    return ",".join(names.get(one, one) for one in found) or "off"


def _preempt_body(value: str) -> Body:
    return {"preempt_mode": [_PREEMPT[value]]}


ROWS: Final = (
    Row(
        "AllocNodes",
        "ALL",
        _hosts,
        _at("nodes", "allowed_allocation"),
        lambda live: _if(_hosts, live.nodes.allowed_allocation),
    ),
    Row(
        "AllowAccounts",
        "ALL",
        _lower_names,
        _at("accounts", "allowed"),
        lambda live: _if(lambda one: _lower_names(one or "ALL"), live.accounts.allowed),
    ),
    Row(
        "AllowGroups",
        "ALL",
        _names,
        _at("groups", "allowed"),
        lambda live: _if(lambda one: _names(one or "ALL"), live.groups.allowed),
    ),
    Row(
        "AllowQos",
        "ALL",
        _lower_names,
        _at("qos", "allowed"),
        lambda live: _if(lambda one: _lower_names(one or "ALL"), live.qos.allowed),
    ),
    Row(
        "Alternate",
        NONE,
        _text,
        _at("alternate"),
        lambda live: _if(lambda one: one or NONE, live.alternate),
    ),
    Row(
        "CpuBind",
        "off",
        _cpu_bind,
        lambda value: {"cpus": {"task_binding": [_BINDS[value]]}},
        _shown_bind,
    ),
    Row("JobDefaults", "", _text, _at("defaults", "job")),
    Row(
        "DefMemPerCPU",
        UNLIMITED,
        _memory,
        _memory_body("defaults", "cpu"),
        lambda live: _if(_shown_memory, live.defaults.partition_memory_per_cpu),
    ),
    Row(
        "DefMemPerNode",
        UNLIMITED,
        _memory,
        _memory_body("defaults", "node"),
        lambda live: _if(_shown_memory, live.defaults.partition_memory_per_node),
    ),
    _flag_row("Default", "DEFAULT"),
    Row(
        "DefaultTime",
        NONE,
        _minutes,
        _limit("defaults", "time"),
        lambda live: _if(_shown, live.defaults.time),
        undo=False,
    ),
    Row(
        "DenyAccounts",
        "",
        _lower_names,
        _at("accounts", "deny"),
        lambda live: _if(_lower_names, live.accounts.deny),
    ),
    Row(
        "DenyQos",
        "",
        _lower_names,
        _at("qos", "deny"),
        lambda live: _if(_lower_names, live.qos.deny),
    ),
    _flag_row("DisableRootJobs", "NO_ROOT"),
    Row(
        "Exclusive",
        "NO",
        _one_of("NO", "NODE", "USER", "TOPO"),
        _at("partition", "exclusive"),
        lambda live: live.partition.exclusive,
    ),
    Row("GraceTime", "0", _number, _int("grace_time"), lambda live: _if(str, live.grace_time)),
    _flag_row("Hidden", "HIDDEN"),
    _flag_row("LLN", "LLN"),
    Row(
        "MaxCPUsPerNode",
        UNLIMITED,
        _count,
        _limit("maximums", "cpus_per_node"),
        lambda live: _if(_shown, live.maximums.cpus_per_node),
    ),
    Row(
        "MaxCPUsPerSocket",
        UNLIMITED,
        _count,
        _limit("maximums", "cpus_per_socket"),
        lambda live: _if(_shown, live.maximums.cpus_per_socket),
    ),
    Row(
        "MaxMemPerCPU",
        UNLIMITED,
        _memory,
        _memory_body("maximums", "cpu"),
        lambda live: _if(_shown_memory, live.maximums.partition_memory_per_cpu),
    ),
    Row(
        "MaxMemPerNode",
        UNLIMITED,
        _memory,
        _memory_body("maximums", "node"),
        lambda live: _if(_shown_memory, live.maximums.partition_memory_per_node),
    ),
    Row(
        "MaxNodes",
        UNLIMITED,
        _count,
        _limit("maximums", "nodes"),
        lambda live: _if(_shown, live.maximums.nodes),
    ),
    Row(
        "MaxTime",
        UNLIMITED,
        _minutes,
        _limit("maximums", "time"),
        lambda live: _if(_shown, live.maximums.time),
    ),
    Row(
        "MinNodes",
        "0",
        _number,
        _int("minimums", "nodes"),
        lambda live: _if(str, live.minimums.nodes),
    ),
    Row(
        "OverSubscribe",
        "NO",
        _shares,
        _at("partition", "oversubscribe"),
        lambda live: live.partition.oversubscribe,
    ),
    Row(
        "OverTimeLimit",
        NONE,
        _count,
        _limit("maximums", "over_time_limit"),
        lambda live: _if(_shown, live.maximums.over_time_limit),
        undo=False,
    ),
    _flag_row("PowerDownOnIdle", "PDOI"),
    Row(
        "PreemptMode",
        GLOBAL,
        _one_of(*_PREEMPT),
        _preempt_body,
        lambda live: _if(_shown_preempt, live.preempt_mode),
        undo=False,
    ),
    Row(
        "PriorityJobFactor",
        "1",
        _number,
        _int("priority", "job_factor"),
        lambda live: _if(str, live.priority.job_factor),
    ),
    Row(
        "PriorityTier",
        "1",
        _number,
        _int("priority", "tier"),
        lambda live: _if(str, live.priority.tier),
    ),
    Row("QOS", "", _lower, _at("qos", "assigned"), lambda live: _if(_lower, live.qos.assigned)),
    _flag_row("ReqResv", "REQ_RESV"),
    Row("ResumeTimeout", "", _text),
    _flag_row("RootOnly", "ROOT_ONLY"),
    Row("SelectTypeParameters", "", _text),
    Row(
        "State",
        "UP",
        _one_of("UP", "DOWN", "DRAIN", "INACTIVE"),
        lambda value: {"partition": {"state": [value]}},
        lambda live: _if(",".join, live.partition.state),
    ),
    Row("SuspendTime", "", _text),
    Row("SuspendTimeout", "", _text),
    Row("Topology", "", _text, _at("topology"), lambda live: live.topology),
    Row(
        "TRESBillingWeights",
        "",
        lambda value: value.lower(),
        _at("tres", "billing_weights"),
        lambda live: _if(_lower, live.tres.billing_weights),
    ),
)
BY_KEY: Final = {row.key.lower(): row for row in ROWS}


def differing(old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[str]:
    """Lower-case keys of two canonical forms that differ, in the order of the table."""
    for key in dict.fromkeys((*BY_KEY, *old, *new)):
        if old.get(key) != new.get(key):
            yield key


def merged(one: Body, other: Body) -> Body:
    """Two bodies in one; lists are joined, and of two values the second counts."""
    out = dict(one)
    for key, value in other.items():
        before: Any = out.get(key)
        if isinstance(before, dict) and isinstance(value, dict) and "set" not in value:
            out[key] = merged(before, value)  # pyright: ignore[reportUnknownArgumentType]
        elif isinstance(before, list) and isinstance(value, list) and key == "flags":
            out[key] = [*before, *value]
        else:
            out[key] = value
    return out
