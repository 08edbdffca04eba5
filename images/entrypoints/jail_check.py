"""Submits the Slurm jobs of an ActiveCheck, and reports their ids to the operator.

Read from the environment: ACTIVE_CHECK_NAME, EACH_WORKER_JOBS, ACTIVE_CHECK_NODE,
ACTIVE_CHECK_MAX_NUMBER_OF_JOBS, ACTIVE_CHECK_RESERVATION_PREFIX, ACTIVE_CHECK_FAILURE_PREFIX, and
the variables of sbatch. The report is the termination message of the container, in lines:

    slurm-job-id=5,7-9            the jobs; a long list is compressed
    slurm-skipped-reason=WORDS    why there is none
"""

from __future__ import annotations

import binascii
import contextlib
import os
import pwd
import re
import subprocess
import sys
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import jail
from supervise import say

SCRIPT = Path("/opt/bin/sbatch.sh")
REPORT = Path("/dev/termination-log")
PARTITION = "hidden"
"""The partition of checks, where the cluster has it; else the default one."""
USER = "soperatorchecks"
"""The user of checks, where the jail has it; else root."""
OUTPUTS = "opt/soperator-outputs/local/slurm_jobs"
OUTPUT = "%N.%x.%j.out"
PAUSE_SECONDS = 0.3
LONGEST_LIST = 3600
LONGEST_FAILURE = 300
"""Characters: the kubelet keeps the last 4096 bytes of a termination message."""
COMPRESSED = "zlib:"
UNFIT = frozenset(
    {
        "DOWN",
        "DRAIN",
        "DRAINED",
        "DRAINING",
        "ERROR",
        "FAIL",
        "FAILING",
        "FUTURE",
        "INVALID_REG",
        "MAINTENANCE",
        "NOT_RESPONDING",
        "POWER_DOWN",
        "POWERED_DOWN",
        "POWERING_DOWN",
        "REBOOT_ISSUED",
        "REBOOT_REQUESTED",
        "RESERVED",
        "UNKNOWN",
    }
)
"""States of nodes on which a job would wait. Source: scontrol(1), show node."""
_GPU_OPTION = re.compile(
    r"^#SBATCH\s.*(--gpus\b|--gpus-per-(node|task|socket)\b|--gres[= ]\S*gpu|-G[ =]?\d)",
    re.MULTILINE,
)
_GPU_VARIABLES = ("SBATCH_GPUS", "SBATCH_GPUS_PER_NODE", "SBATCH_GPUS_PER_TASK")
_GRES_VARIABLE = "SBATCH_GRES"
_OUTPUT_VARIABLE = "SBATCH_OUTPUT"
_FIELD = re.compile(r"\b(NodeName|State|Gres|Partitions)=(\S*)")
_REASON = re.compile(r"^\s*Reason=(.*)$", re.MULTILINE)
_IDLE = frozenset({"IDLE", "DRAIN", "DYNAMIC_NORM", "CLOUD"})
_RESERVED = frozenset({"RESERVED", "MAINTENANCE", "MAINT"})
RESERVATION = "activecheck.{check}.{node}"
"""Name of the reservation in which a check runs again on a node that it drained. The operator ends
it: see decide/check/recheck.py."""
IDLE = "00:05:00"
"""Time without a job after which slurmctld ends a reservation that the operator cannot end; it has
drained the node again by then, if the check failed. Source: scontrol(1), PURGE_COMP."""
_ID = re.compile(r"^(\d+)", re.MULTILINE)


def needs_gpus(script: str, environment: Mapping[str, str]) -> bool:
    """Return whether the jobs ask for GPUs, by options of the script or by variables."""
    if "gpu" in environment.get(_GRES_VARIABLE, ""):
        return True
    return bool(_GPU_OPTION.search(script)) or any(environment.get(one) for one in _GPU_VARIABLES)


def nodes_in(text: str) -> Iterator[dict[str, str]]:
    """Read the output of `scontrol show node`, where a reason has a line of its own."""
    for record in re.split(r"^(?=NodeName=)", text, flags=re.MULTILINE):
        found: dict[str, str] = {}
        for key, value in _FIELD.findall(record):
            # Comments of nodes come later, and may have the same words.
            found.setdefault(key, value)
        reason = _REASON.search(record)
        found["Reason"] = reason[1] if reason else ""
        if found.get("NodeName"):
            yield found


def has_gpus(node: Mapping[str, str]) -> bool:
    """Return whether a node has GPUs."""
    return node.get("Gres", "").startswith("gpu") or ",gpu" in node.get("Gres", "")


def is_own_drain(
    node: Mapping[str, str], check: str, reservations: str = "", prefix: str = ""
) -> bool:
    """Return whether this check has drained a node, which is idle now.

    The reservation of an earlier run may be there still: the operator ends it after that run. So
    may the one that the check's own reaction to the failure made, whose name begins with `prefix`.
    """
    words = rf"\S.* {re.escape(check)}: (job \d+|not confirmed) \[slurm_job\]( \[[^\]]*\])?\s*"
    states = {*node.get("State", "").split("+")}
    names = [RESERVATION.format(check=check, node=node["NodeName"])]
    names += [f"{prefix}-{node['NodeName']}"] if prefix else []
    is_reserved = any(f"ReservationName={name} " in reservations for name in names)
    allowed = _IDLE | _RESERVED if is_reserved else _IDLE
    # In the name of a reservation the node follows the last dot.
    is_idle = {"IDLE", "DRAIN"} <= states <= allowed and "." not in node["NodeName"]
    return is_idle and bool(re.fullmatch(words, node.get("Reason", "")))


def reserve(check: str, node: str) -> str:
    """Resume a node for this check alone; return the name of the reservation, empty on a failure.

    The reservation comes first and has no end, so no job of a user runs on the node. Where the
    operator cannot end it, slurmctld does once no job has used it for IDLE.
    """
    name = RESERVATION.format(check=check, node=node)
    users = ",".join(["root", *user_names()])
    words = ["starttime=now", "duration=infinite", f"nodes={node}", f"users={users}"]
    try:
        # With the space: the name of worker-1 begins that of worker-10.
        if f"ReservationName={name} " not in output_of(["scontrol", "show", "reservation", "-o"]):
            command = ["scontrol", "create", "reservation", f"reservationname={name}", *words]
            # Seen with 24.11: of one with MAINT that ended so, nodes kept the state MAINTENANCE.
            kind = f"purge_comp={IDLE}" if ends_itself() else "maint"
            output_of([*command, f"flags={kind},ignore_jobs"])
        output_of(["scontrol", "update", f"nodename={node}", "state=resume"])
    except OSError as error:
        say(str(error))
        return ""
    return name


def ends_itself() -> bool:
    """Return whether reservations need an end: slurmrestd before 25.05 deletes none."""
    found = re.search(r"(\d+)\.(\d+)", output_of(["scontrol", "--version"]))
    return found is not None and (int(found[1]), int(found[2])) < (25, 5)


def is_fit(node: Mapping[str, str], partition: str, beside: frozenset[str] = frozenset()) -> bool:
    """Return whether a job would start on a node; states `beside` do not matter."""
    # A star stands for a node that does not respond.
    states = {*node.get("State", "").replace("*", "+NOT_RESPONDING").split("+")} - beside
    inside = not partition or partition in node.get("Partitions", "").split(",")
    return inside and UNFIT.isdisjoint(states)


def reserved_for_check(
    nodes: Iterable[Mapping[str, str]], partition: str, prefix: str, reservations: str
) -> dict[str, str]:
    """Return the nodes that a reaction reserved, with the reservation that a success would end.

    Nobody else's jobs run there, so without a job in it no success ever ends it.
    """
    found: dict[str, str] = {}
    for node in nodes if prefix else ():
        name = f"{prefix}-{node['NodeName']}"
        is_there = f"ReservationName={name} " in reservations
        if is_there and is_fit(node, partition, _RESERVED):
            found[node["NodeName"]] = name
    return found


def ranges(ids: Iterable[int]) -> str:
    """Return ids as a list with ranges: a termination message has 4096 bytes."""
    parts: list[list[int]] = []
    for one in sorted(set(ids)):
        if parts and parts[-1][-1] == one - 1:
            parts[-1][1:] = [one]
        else:
            parts.append([one])
    return ",".join("-".join(map(str, part)) for part in parts)


def listed(ids: Iterable[int]) -> str:
    """Return ids as the report has them: as ranges, or compressed where these are long.

    Jobs of others come between those of a long run. The text that is compressed has the distance of
    each id from the one before.
    """
    text = ranges(ids)
    if len(text) <= LONGEST_LIST:
        return text
    found = sorted(set(ids))
    steps = [one - before for before, one in zip([0, *found], found, strict=False)]
    packed = zlib.compress(",".join(map(str, steps)).encode(), 9)
    return COMPRESSED + binascii.b2a_base64(packed, newline=False).decode()


def report(*lines: str) -> None:
    """Write the termination message: at any time it has all jobs up to then."""
    REPORT.write_text("".join(f"{one}\n" for one in lines))


def output_of(command: Sequence[str]) -> str:
    """Return the output of a command of Slurm; raise OSError with its words."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        words = " ".join(done.stderr.split()) or f"exit status {done.returncode}"
        raise OSError(f"{command[0]}: {words}")
    return done.stdout


def partition_of_checks() -> str:
    """Return the partition of checks; empty for the default one."""
    with contextlib.suppress(OSError):
        output_of(["scontrol", "show", "partition", PARTITION])
        return PARTITION
    return ""


def user_names() -> list[str]:
    """Return the user of checks, where it exists."""
    try:
        return [pwd.getpwnam(USER).pw_name]
    except KeyError:
        return []


def user_options() -> list[str]:
    """Return the options of sbatch for the user of checks; none where it does not exist."""
    if not user_names():
        return ["--chdir=/"]
    found = pwd.getpwnam(USER)
    return [f"--uid={found.pw_uid}", f"--gid={found.pw_gid}", f"--chdir={found.pw_dir}"]


def output_options() -> list[str]:
    """Return the options of sbatch for the files with what jobs print."""
    if os.environ.get(_OUTPUT_VARIABLE):
        return []
    folder = jail.JAIL / OUTPUTS if jail.has_jail() else Path("/", OUTPUTS)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o1777)
    except OSError:
        return ["--output=/dev/null"]
    return [f"--output=/{OUTPUTS}/{OUTPUT}"] if jail.has_jail() else ["--output=/dev/null"]


def submit(command: Sequence[str], targets: Sequence[Sequence[str]]) -> tuple[list[int], str]:
    """Submit one job for each target; return their ids and the words of the last failure."""
    ids: list[int] = []
    failure = ""
    for number, options in enumerate(targets):
        if number:
            time.sleep(PAUSE_SECONDS)
        try:
            found = _ID.search(output_of([*command, *options, str(SCRIPT)]))
        except OSError as error:
            failure = str(error)
            say(failure)
            continue
        if not found:
            continue
        text = listed([*ids, int(found[1])])
        if len(text) > LONGEST_LIST:
            # The operator would have no result of it, nor of any job after it.
            cancel(found[1])
            failure = f"{len(ids)} of {len(targets)} jobs fill the report: the next run has others"
            report(f"slurm-job-id={listed(ids)}", failure)
            break
        ids.append(int(found[1]))
        report(f"slurm-job-id={text}", failure[-LONGEST_FAILURE:])
    return ids, failure


def cancel(job: str) -> None:
    """Cancel one job."""
    with contextlib.suppress(OSError):
        output_of(["scancel", job])


def cancel_older(name: str) -> None:
    """Cancel jobs of an earlier run, as the original does: they wait for nodes."""
    with contextlib.suppress(OSError):
        output_of(["scancel", f"--name={name}", "--state=PENDING"])


def start_sackd() -> None:
    """Start the daemon that signs with auth/slurm; with munge a sidecar has signed already."""
    user = "slurm"
    if not jail.has_munge():
        Path(jail.SLURM_RUN).mkdir(mode=0o755, parents=True, exist_ok=True)
        entry = pwd.getpwnam(user)
        os.chown(jail.SLURM_RUN, entry.pw_uid, entry.pw_gid)
    jail.prepare_auth(user)
    if not jail.has_munge():
        subprocess.Popen(["/usr/sbin/sackd", "--systemd"], user=user, group=user)
        path = Path(jail.SLURM_RUN, "sack.socket")
        jail.wait_for(f"sackd at {path}", lambda: jail.is_socket(path))


def main() -> int:
    """Submit the jobs; return the container's exit status."""
    name = os.environ["ACTIVE_CHECK_NAME"]
    most = int(os.environ.get("ACTIVE_CHECK_MAX_NUMBER_OF_JOBS") or 0)
    jail.wait_for_configuration()
    start_sackd()
    nodes = list(nodes_in(output_of(["scontrol", "show", "node"])))
    with_gpus = needs_gpus(SCRIPT.read_text(), os.environ)
    if with_gpus and not any(map(has_gpus, nodes)):
        report("slurm-skipped-reason=the script asks for GPUs, and no Slurm node has any")
        return 0
    partition = partition_of_checks()
    command = ["sbatch", "--parsable", f"--job-name={name}", *user_options(), *output_options()]
    if partition:
        command.append(f"--partition={partition}")
    targets: list[list[str]] = [[]]
    if os.environ.get("EACH_WORKER_JOBS") == "true":
        only = os.environ.get("ACTIVE_CHECK_NODE", "")
        if only:
            nodes = [node for node in nodes if node["NodeName"] == only]
        else:
            cancel_older(name)
        fit = [
            node["NodeName"]
            for node in nodes
            if is_fit(node, partition) and (has_gpus(node) or not with_gpus)
        ]
        # Each run takes others where their number is limited.
        fit.sort(key=lambda _: os.urandom(8))
        there = output_of(["scontrol", "show", "reservation", "-o"])
        failed = os.environ.get("ACTIVE_CHECK_FAILURE_PREFIX", "")
        own = [node["NodeName"] for node in nodes if is_own_drain(node, name, there, failed)]
        again = {node: found for node in own if (found := reserve(name, node))}
        prefix = os.environ.get("ACTIVE_CHECK_RESERVATION_PREFIX", "")
        again |= reserved_for_check(nodes, partition, prefix, there)
        left = max(most - len(again), 0) if most else len(fit)
        chosen = sorted([*again, *fit[:left]])
        if not chosen:
            report("slurm-skipped-reason=no Slurm node takes jobs now")
            return 0
        targets = [
            [
                *("--no-requeue", "--nodes=1", f"--nodelist={one}"),
                *([f"--reservation={again[one]}"] if one in again else []),
            ]
            for one in chosen
        ]
    ids, failure = submit(command, targets)
    say(f"submitted {len(ids)} of {len(targets)} jobs")
    if not ids:
        report(failure or "sbatch printed no job id")
    return 1 if failure or not ids else 0


if __name__ == "__main__":
    sys.exit(main())
