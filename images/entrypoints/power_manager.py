"""power-manager: what slurmctld's programs for power saving do, as those of soperator.

    power-manager resume|suspend|wait-added|wait-removed -nodes HOSTS [-namespace NAME] [-timeout T]

`resume` adds the ordinals of HOSTS to spec.activeNodes of their NodeSetPowerStates, `suspend`
removes them, and the others wait until they are there or gone. T is a duration such as 30s, or the
name of a key of slurm.conf that has it in seconds. The exit status is 0 when all was done, 1 when
not, and 2 for wrong arguments. Words go to standard error and to slurmctld's container log.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kube_api import KubeApi, UnavailableError

GROUP, VERSION = "slurm.nebius.ai", "v1alpha1"
LABEL = "slurm.nebius.ai/nodeset"
LOG = Path("/proc/1/fd/2")
"""The log of the container: slurmctld keeps what its programs write to itself."""
PAUSE, LONGEST_PAUSE = 0.2, 5.0
"""Seconds between attempts; they double."""
POLL = 2.0
MOST_NODES = 1 << 16
_MOST_FILES = 16
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_INCLUDE = re.compile(r"^\s*include\s+(\S+)", re.IGNORECASE | re.MULTILINE)
_PART = re.compile(r"([^\[\],]+?)(?:\[([0-9,-]+)\])?")


class RejectedError(Exception):
    """Another attempt would not help."""


def log(level: str, words: str, **fields: Any) -> None:
    """Write one line of JSON, as soperator's program does."""
    line = json.dumps({"level": level, "msg": words, **fields}) + "\n"
    sys.stderr.write(line)
    with suppress(OSError):
        LOG.write_text(line, encoding="utf-8")


def expand(hosts: str) -> list[str]:
    """Return the names of a host list. Raises RejectedError."""
    found: list[str] = []
    for part in _parts(hosts):
        match = _PART.fullmatch(part)
        if match is None:
            raise RejectedError(f"{part!r} is no host list: write name-[0-3,7] or name-0")
        name, numbers = match.groups()
        for one in (numbers or "").split(","):
            first, dash, last = one.partition("-")
            if not one:
                found.append(name)
                continue
            last = last if dash else first
            if not (first.isdigit() and last.isdigit()) or int(last) - int(first) > MOST_NODES:
                raise RejectedError(f"{one!r} in {part!r} is no range of numbers")
            # A number keeps its leading zeros.
            found += [f"{name}{n:0{len(first)}d}" for n in range(int(first), int(last) + 1)]
    return found


def _parts(hosts: str) -> list[str]:
    """The parts between commas that are in no brackets."""
    parts, depth = [""], 0
    for char in hosts.strip():
        depth += (char == "[") - (char == "]")
        if char == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return [part for part in parts if part]


def by_node_set(names: Sequence[str]) -> dict[str, set[int]]:
    """Return the ordinals of each NodeSet. Raises RejectedError for a name of another form."""
    found: dict[str, set[int]] = {}
    for name in names:
        node_set, _, ordinal = name.rpartition("-")
        if not node_set or not re.fullmatch(r"0|[1-9][0-9]*", ordinal):
            raise RejectedError(f"{name!r} is no node of a NodeSet: its name ends with -ORDINAL")
        found.setdefault(node_set, set()).add(int(ordinal))
    return found


def seconds(text: str, conf: Path | None = None) -> float:
    """Return a duration in seconds: of Go's form, or a key of slurm.conf. Raises ValueError."""
    if text.isalpha():
        path = conf or Path(os.environ.get("SLURM_CONF", "/etc/slurm/slurm.conf"))
        found = _conf_value(text, path)
        return float(found) if found.isdigit() else 60.0
    if not text or _DURATION.sub("", text):
        raise ValueError(f"{text!r} is no duration such as 30s")
    return sum(float(number) * _UNITS[unit] for number, unit in _DURATION.findall(text))


def _conf_value(key: str, conf: Path) -> str:
    """The last value of a key in slurm.conf and the files that it includes."""
    value, paths = "", [conf]
    for path in paths:
        with suppress(OSError):
            text = path.read_text(encoding="utf-8", errors="replace")
            found = [path.parent / name for name in _INCLUDE.findall(text)]
            paths += [one for one in found if one not in paths][:_MOST_FILES]
            given = re.findall(rf"^\s*{key}\s*=\s*(\S+)", text, re.IGNORECASE | re.MULTILINE)
            value = (given or [value])[-1]
    return value


@dataclass
class PowerManager:
    """Changes the NodeSetPowerStates of a namespace; each attempt may fail until `until`."""

    api: KubeApi
    namespace: str
    until: float
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep

    def change(self, node_sets: Mapping[str, set[int]], *, adds: bool) -> bool:
        """Add or remove ordinals; whether all are as asked. One NodeSet waits for no other."""
        left, pause, is_done = dict(node_sets), PAUSE, True
        while left:
            is_last = self.clock() + pause > self.until
            for node_set, ordinals in list(left.items()):
                try:
                    self._attempt(node_set, ordinals, adds=adds)
                except UnavailableError as error:
                    words = "giving up" if is_last else "trying again"
                    log("error" if is_last else "warn", f"{words}: {error}", nodeSet=node_set)
                    if not is_last:
                        continue
                    is_done = False
                except RejectedError as error:
                    log("error", str(error), nodeSet=node_set)
                    is_done = False
                del left[node_set]
            if left:
                self.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
        return is_done

    def wait(self, node_set: str, ordinals: set[int], *, added: bool) -> bool:
        """Wait until all ordinals are active, or none. Without the object neither holds."""
        while True:
            with suppress(UnavailableError):
                found = self.api.ask("GET", self._power_states(node_set))
                if found.status < 300:
                    active = set(_active(found.body))
                    if ordinals <= active if added else not ordinals & active:
                        return True
            if self.clock() + POLL > self.until:
                what = "active" if added else "gone"
                log("error", f"ordinals {_shown(ordinals)} are not {what} yet", nodeSet=node_set)
                return False
            self.sleep(POLL)

    def _attempt(self, node_set: str, ordinals: set[int], *, adds: bool) -> None:
        declared = self.api.ask("GET", f"{self._base()}/nodesets/{node_set}")
        if declared.status == 404:
            raise RejectedError(
                f"there is no NodeSet {node_set} in namespace {self.namespace} for ordinals "
                f"{_shown(ordinals)}"
            )
        spec = _spec(declared.body)
        if not spec.get("ephemeralNodes"):
            words = "has no ephemeral nodes: spec.ephemeralNodes is false"
            raise RejectedError(f"NodeSet {node_set} {words}")
        size = int(spec.get("replicas", 1))
        beyond = {one for one in ordinals if one >= size} if adds else set[int]()
        found = self.api.ask("GET", self._power_states(node_set))
        if found.status == 404:
            self._create(node_set, ordinals - beyond, adds=adds)
        else:
            self._update(node_set, found.body, ordinals - beyond, adds=adds)
        if beyond:
            raise RejectedError(
                f"ordinals {_shown(beyond)} are out of range: NodeSet {node_set} has {size} nodes, "
                "by spec.replicas"
            )

    def _create(self, node_set: str, ordinals: set[int], *, adds: bool) -> None:
        """Without the object a resume would be lost. The operator gives it an owner."""
        if not adds or not ordinals:
            return
        body = {
            "apiVersion": f"{GROUP}/{VERSION}",
            "kind": "NodeSetPowerState",
            "metadata": {
                "name": node_set,
                "namespace": self.namespace,
                "labels": {LABEL: node_set},
            },
            "spec": {"nodeSetRef": node_set, "activeNodes": sorted(ordinals)},
        }
        _done(self.api.ask("POST", self._power_states(), body))
        log("info", f"created with active ordinals {_shown(ordinals)}", nodeSet=node_set)

    def _update(self, node_set: str, live: Any, ordinals: set[int], *, adds: bool) -> None:
        """Write the whole object: its resourceVersion keeps two writes from undoing each other."""
        before = set(_active(live))
        after = before | ordinals if adds else before - ordinals
        if after == before:
            return
        live["spec"] = {**_spec(live), "activeNodes": sorted(after)}
        _done(self.api.ask("PUT", self._power_states(node_set), live))
        words = f"{'added' if adds else 'removed'} ordinals {_shown(before ^ after)}"
        log("info", words, nodeSet=node_set)

    def _base(self) -> str:
        return f"/apis/{GROUP}/{VERSION}/namespaces/{self.namespace}"

    def _power_states(self, name: str = "") -> str:
        return f"{self._base()}/nodesetpowerstates{'/' if name else ''}{name}"


def _done(reply: Any) -> None:
    """Raises UnavailableError for a conflict, RejectedError for another rejection."""
    if reply.status in (404, 409):
        raise UnavailableError(reply.words)
    if reply.status >= 300:
        raise RejectedError(f"the API server rejects the change: {reply.words}")


def _spec(body: Any) -> dict[str, Any]:
    return body.get("spec") or {}


def _active(body: Any) -> list[int]:
    return _spec(body).get("activeNodes") or []


def _shown(ordinals: set[int]) -> str:
    return ", ".join(map(str, sorted(ordinals)))


def main(arguments: list[str], api: KubeApi | None = None) -> int:
    """Carry out one command; return the exit status."""
    parser = argparse.ArgumentParser("power-manager", allow_abbrev=False)
    commands = ("resume", "suspend", "wait-added", "wait-removed")
    parser.add_argument("command", choices=commands)
    parser.add_argument("-nodes", "--nodes", required=True)
    parser.add_argument("-namespace", "--namespace", default="")
    parser.add_argument("-timeout", "--timeout", default="30s")
    given = parser.parse_args(arguments)
    api = api or KubeApi()
    try:
        timeout = seconds(given.timeout)
    except ValueError as error:
        parser.error(str(error))
    namespace = given.namespace or api.namespace()
    if not namespace:
        parser.error(f"-namespace is missing, and {api.folder} has none")
    manager = PowerManager(api, namespace, time.monotonic() + timeout)
    try:
        node_sets = by_node_set(expand(given.nodes))
    except RejectedError as error:
        log("error", str(error))
        return 1
    adds = given.command in ("resume", "wait-added")
    if given.command.startswith("wait"):
        waits = [manager.wait(name, one, added=adds) for name, one in node_sets.items()]
        return 0 if all(waits) else 1
    return 0 if manager.change(node_sets, adds=adds) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
