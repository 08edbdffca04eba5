"""What a run of checks reads of its node, and the commands that change it.

Facts are read when a check first needs them, so a run on a healthy node asks slurmctld nothing.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path

from check_comment import check_comment, with_check_comment
from check_drain import Comment, Drain, NodeChange, NodeState, Undrain, is_reason_of_check
from check_share import OutNode, is_check_drain, share_in

MODELS = ("H100", "H200", "B200", "B300", "GB300")
"""Of NVIDIA, with a platform tag of their own."""
CPU = "CPU"
CHANGE_SECONDS = 1.5
"""Longest wait for scontrol, once all checks of a run have ended."""
TRUSTED_SECONDS = 3600.0
"""For so long "no check drained this node" is believed without asking slurmctld again."""
CONFIGURATION = ("slurm.conf", "slurm_base.conf.noedit")
CONFIGURATION_FOLDERS = ("etc/slurm", "mnt/jail/etc/slurm", "run/slurm/conf")
"""Where the files of slurm.conf are that the operator writes."""
METADATA = "run/soperator/node_metadata.env"
_WRITTEN = re.compile(r" \[[^\s\]]+@([^\s\]]+)\]$")
"""By whom and when a reason was set."""
_MEMORY = {"": 1 << 20, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


class CommandError(Exception):
    """A command that failed, with its own words."""


def output_of(*words: str, seconds: float) -> str:
    """Output of a command that ends in time. Raises CommandError."""
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, timeout=max(seconds, 0.1), check=False
        )
    except FileNotFoundError:
        raise CommandError(f"{words[0]} is absent") from None
    except subprocess.TimeoutExpired:
        raise CommandError(f"{words[0]} did not answer in {seconds:.1f} s") from None
    except OSError as error:
        raise CommandError(f"{words[0]}: {error.strerror}") from None
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise CommandError(f"{words[0]}: {said[0] if said else f'exit {done.returncode}'}")
    return done.stdout


def platform_tags(names: Sequence[str]) -> tuple[str, ...]:
    """Tags of a node with these GPUs, by the names that nvidia-smi has: `8xH100`, `8xGPU`."""
    if not names:
        return (CPU,)
    found: list[str] = []
    if len(set(names)) == 1:
        words = re.split(r"[\s-]+", names[0])
        model = next((one for one in MODELS if one in words and "NVIDIA" in words), "")
        found += [f"{len(names)}x{model}"] if model else []
    return (*found, f"{len(names)}xGPU")


def gpu_count(tags: Sequence[str]) -> int:
    """The number of GPUs that tags name."""
    found = [one.partition("x")[0] for one in tags if one.endswith("xGPU")]
    return int(found[0]) if found else 0


def parse_node(text: str) -> dict[str, str]:
    """Fields of `scontrol show node`; Reason without its user and time."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        part = line.strip()
        key, _, value = part.partition("=")
        if key in ("Reason", "Comment", "Extra"):
            found.setdefault(key, value)
        else:
            for word in part.split():
                name, _, value = word.partition("=")
                found.setdefault(name, value)
    reason = _WRITTEN.sub("", found.get("Reason", ""))
    return {**found, "Reason": reason}


def node_state(fields: Mapping[str, str]) -> NodeState:
    """The state of a node by its fields; of the comment the part of checks."""
    flags = fields.get("State", "").rstrip("*~#!%$@^-").split("+")
    comment = check_comment(fields.get("Comment", ""))
    return NodeState("DRAIN" in flags, fields.get("Reason", ""), comment)


def out_nodes(text: str) -> tuple[int, dict[str, OutNode]]:
    """How many nodes `scontrol show node` lists, and those that checks have drained."""
    count, found = 0, dict[str, OutNode]()
    for record in re.split(r"^(?=NodeName=)", text, flags=re.MULTILINE):
        name = re.match(r"NodeName=(\S+)", record)
        if name is None:
            continue
        count += 1
        state = re.search(r"^\s+State=(\S+)", record, re.MULTILINE)
        given = re.search(r"^\s+Reason=(.*)$", record, re.MULTILINE)
        if state is None or given is None or "DRAIN" not in state[1].split("+"):
            continue
        reason, since = given[1], 0.0
        if (written := _WRITTEN.search(reason)) is not None:
            reason = reason[: written.start()]
            with contextlib.suppress(ValueError):
                since = datetime.fromisoformat(written[1]).timestamp()
        if is_check_drain(reason):
            found[name[1]] = OutNode(name[1], reason, since)
    return count, found


def memory_bytes(words: str) -> str:
    """An amount of Slurm, in MiB without a unit, as bytes; empty for none."""
    match = re.fullmatch(r"([0-9.]+)([KMGT]?)", words)
    return str(int(float(match[1]) * _MEMORY[match[2]])) if match else ""


@dataclass
class WorkerNode:
    """The node of this worker. `root` is the container's root, `state` a folder of the pod.

    `left` are the seconds that a question may take.
    """

    name: str
    root: Path
    state: Path
    left: Callable[[], float]
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)

    @cached_property
    def tags(self) -> tuple[str, ...]:
        """Platform tags. A GPU that is missing now takes none of them away."""
        with contextlib.suppress(CommandError):
            given = self._ask("nvidia-smi", "--query-gpu=name", "--format=csv,noheader")
            found = platform_tags([line.strip() for line in given.splitlines() if line.strip()])
            if gpu_count(found) >= gpu_count(self._last_tags):
                if found != self._last_tags:
                    self._write("platform", " ".join(found))
                return found
        return self._last_tags or (CPU,)

    @cached_property
    def _last_tags(self) -> tuple[str, ...]:
        return tuple(self._read("platform").split())

    @cached_property
    def fields(self) -> Mapping[str, str]:
        """The node's record in slurmctld. Raises CommandError."""
        found = parse_node(self._ask("scontrol", "show", "node", self.name))
        state = node_state(found)
        marked = is_reason_of_check(state.reason) or bool(state.comment)
        self._write("mark", "check" if marked else "none")
        return found

    @property
    def slurm_state(self) -> NodeState:
        """Its state in slurmctld. Raises CommandError."""
        return node_state(self.fields)

    @property
    def has_no_mark(self) -> bool:
        """Whether slurmctld had no drain and comment of a check on it, a short while ago."""
        with contextlib.suppress(OSError):
            age = time.time() - (self.state / "mark").stat().st_mtime
            return 0 <= age < TRUSTED_SECONDS and self._read("mark") == "none"
        return False

    def _ask(self, *words: str) -> str:
        return output_of(*words, seconds=self.left())

    def out_by_checks(self) -> tuple[int, dict[str, OutNode]]:
        """How many nodes the cluster has, and those that checks have drained. Raises CommandError.

        slurmctld is asked for all nodes, so only a worker does so that is about to be drained.
        """
        return out_nodes(self._ask("scontrol", "show", "node"))

    @property
    def share(self) -> str:
        """The share of nodes that checks may drain; empty for the default one."""
        for folder in CONFIGURATION_FOLDERS:
            for name in CONFIGURATION:
                with contextlib.suppress(OSError, UnicodeDecodeError):
                    text = (self.root / folder / name).read_text(encoding="utf-8")
                    if found := share_in(text):
                        return found
        return ""

    def forget(self) -> None:
        """Ask slurmctld again for the next fact."""
        self.__dict__.pop("fields", None)

    @property
    def job_gpus(self) -> int:
        """GPUs of the job on this node."""
        return len([one for one in self.environ.get("SLURM_JOB_GPUS", "").split(",") if one])

    def variable(self, name: str) -> str:
        """A fact that a check asks for by need_env. Raises CommandError."""
        if name == "CHECKS_PLATFORM_TAG":
            return self.tags[0]
        if name == "CHECKS_PLATFORM_TAGS":
            return ",".join(self.tags)
        if name == "CHECKS_NODE_STATE_FLAGS":
            return self.fields.get("State", "")
        if name == "CHECKS_NODE_REASON":
            return self.slurm_state.reason
        if name == "CHECKS_NODE_COMMENT":
            return self.slurm_state.comment
        if name == "CHECKS_NODE_REAL_MEM_BYTES":
            return self._real_memory()
        return self._job_memory()

    def _real_memory(self) -> str:
        key = "SOPERATOR_NODE_REAL_MEMORY_BYTES"
        with contextlib.suppress(OSError):
            for line in (self.root / METADATA).read_text(encoding="utf-8").splitlines():
                name, _, value = line.removeprefix("export ").partition("=")
                value = value.strip("\"'")
                if name == key and value.isdecimal() and int(value) > 0:
                    return value
        return memory_bytes(self.fields.get("RealMemory", ""))

    def _job_memory(self) -> str:
        job = self.environ.get("SLURM_JOB_ID", "")
        if not job:
            return ""
        text = self._ask("scontrol", "show", "job", job, "-o")
        found = re.search(r"\bAllocTRES=\S*?\bmem=([0-9.]+[KMGT]?)", text)
        nodes = re.search(r"\bNumNodes=(\d+)", text)
        whole = memory_bytes(found[1]) if found else ""
        return str(int(whole) // max(1, int(nodes[1]))) if whole and nodes else whole

    def apply(self, change: NodeChange) -> None:
        """Send a change to slurmctld. Raises CommandError."""
        update = ("scontrol", "update", f"NodeName={self.name}")
        if isinstance(change, Drain):
            self._ask(*update, "State=DRAIN", f"Reason={change.reason}")
        elif isinstance(change, Undrain):
            self._ask(*update, "State=UNDRAIN")
        else:
            # The rest of the comment is the operator's.
            text = with_check_comment(self.fields.get("Comment", ""), change.text)
            self._ask(*update, f"Comment={text}")
        removes = isinstance(change, Undrain) or change == Comment("")
        self._write("mark", "" if removes else "check")
        self.forget()

    def _read(self, name: str) -> str:
        with contextlib.suppress(OSError):
            return (self.state / name).read_text(encoding="utf-8").strip()
        return ""

    def _write(self, name: str, text: str) -> None:
        # A folder that cannot be written costs a question to slurmctld in each run.
        with contextlib.suppress(OSError):
            new = self.state / f"{name}.{os.getpid()}"
            new.write_text(f"{text}\n", encoding="utf-8")
            new.replace(self.state / name)
