"""The reconfigure container of slurmctld's pod, as far as the operator can observe it.

It does not run the script: it logs the script's lines (render/shell/reconfigure.sh). slurmctld
rejects files with a line of slurm.conf that begins with `Bogus`. No trial sees the options `Ends`
and `Hangs` of CommunicationParameters; slurmctld does not start with them, beside an option that
takes effect by a restart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from penstock.api.cluster import marks
from penstock.api.kubernetes.meta import Json
from penstock.render.config.content import content_hash
from penstock.render.slinky.cluster.release import images
from penstock.simulation.slurm import slurmdbd
from penstock.simulation.slurm.auth_keys import decoded
from penstock.simulation.slurm.slurmdbd import Slurmdbds
from penstock.slurm.conf.includes import SLURM_CONF, resolved
from penstock.slurm.versions import of_image

Files = Mapping[str, str]
ETC, CANDIDATES = "slurm-etc", "slurm-candidate"
SECRETS = "/secrets"
PROJECTED = {"configMap": "/configmaps", "secret": SECRETS}
"""Sources of projected volumes that have files, with their resource."""
Data = Callable[[str, str], "Files | None"]
"""The data of a ConfigMap or Secret by resource and name, None when there is none."""


def slurm_conf(files: Files) -> str:
    """slurm.conf with the files that it includes."""
    text = files.get(SLURM_CONF, "")
    return resolved(files) if "include " in text else text


def rejection(files: Files) -> str | None:
    """Slurmctld's message about files that it rejects."""
    for line in slurm_conf(files).splitlines():
        if line.startswith("Bogus"):
            key = line.partition("=")[0]
            return (
                f"error: _parse_next_key: Parsing error at unrecognized key: {key} / "
                "fatal: Unable to process configuration file"
            )
    return None


REBINDS = "CommunicationParameters=NoCtldInAddrAny"
"""A line that takes effect by a restart of slurmctld."""
ENDS, HANGS = "Ends", "Hangs"


def fatal(files: Files) -> str | None:
    """Which of `ENDS` and `HANGS` slurmctld does when it is started with these files."""
    for line in slurm_conf(files).splitlines():
        key, _, values = line.partition("=")
        for one in (ENDS, HANGS):
            if key == "CommunicationParameters" and one in values.split(","):
                return one
    return None


def release(pod: Json) -> str:
    """The version of Slurm in slurmctld's image, as its tag has it."""
    found = of_image(images(pod["spec"]).get("slurmctld", ""))
    return f"{found}.5" if found is not None else ""


def mounted(pod: Json, volume: str, data: Data) -> dict[str, str]:
    """The files of ConfigMaps and Secrets that a projected volume of a pod has now."""
    found: dict[str, str] = {}
    for one in pod["spec"].get("volumes", ()):
        if one["name"] != volume:
            continue
        for source in one.get("projected", {}).get("sources", ()):
            for kind, resource in PROJECTED.items():
                if (named := source.get(kind)) is not None:
                    found.update(_items(named, data(resource, named["name"]) or {}))
    return found


def _items(source: Json, files: Files) -> Files:
    items: list[Json] | None = source.get("items")
    if not items:
        return files
    return {one["path"]: files[one["key"]] for one in items if one["key"] in files}


def data_of(find: Callable[[str, str, str], Json | None], namespace: str) -> Data:
    """Looks up what is mounted in pods of a namespace; `find` is an API server's."""

    def data(resource: str, name: str) -> Files | None:
        found = find(resource, namespace, name)
        if found is None:
            return None
        content: Files = found.get("data") or {}
        return decoded(content) if resource == SECRETS else content

    return data


def _lines() -> list[str]:
    return []


@dataclass
class Sidecar:
    """One container; `lines` are its log. It begins with the files that slurmctld starts with."""

    etc: Files
    lines: list[str] = field(default_factory=_lines)
    candidate: Files = field(default_factory=dict[str, str])
    live: str = ""
    restarts: str = ""
    asked: str = ""
    unsure: bool = False
    """Whether trial starts give no verdict."""
    taken: Callable[[Files], None] = lambda _: None
    """Called with files that a trial start took."""
    has: Callable[[Files], None] = lambda _: None
    """Called with files of which slurmctld has all without reading them."""
    reads: Callable[[Files], None] = lambda _: None
    """Called with the files that slurmctld reads, when it starts and when it is reconfigured."""
    release: str = ""
    """Version of Slurm in its image."""
    up: Callable[[], bool] = lambda: True
    """Whether slurmctld runs."""
    spend: Callable[[Callable[[], None]], None] = lambda end: end()
    """Called when slurmctld has read its files: changes that were made by requests are gone."""
    _busy: bool = False
    _lives: int = 0
    _tried: str = ""
    _applied: str = ""
    _rejected: str = ""
    _done: str = ""
    _pending: str = ""

    def __post_init__(self) -> None:
        self._applied = content_hash(self.etc)
        self._log_release()
        self._log(f"effective {self._applied}")
        if fatal(self.etc) is None:
            self.reads(self.etc)

    def mount(self, pod: Json, data: Data) -> None:
        """The kubelet refreshes the volumes and what is projected of the pod's annotations."""
        self.etc = mounted(pod, ETC, data) or self.etc
        self.candidate = mounted(pod, CANDIDATES, data)
        notes: Mapping[str, str] = pod["metadata"].get("annotations") or {}
        self.live = notes.get(marks.CONFIG_LIVE, "")
        self.restarts = notes.get(marks.CONFIG_RESTART, "")
        self.asked = notes.get(marks.RECONFIGURE, "")

    def restart(self) -> None:
        """The container starts again: it knows what was tried and taken over, and little else."""
        self.lines.clear()
        self._rejected, self._pending, self._busy = "", "", False
        self._lives += 1
        self._log_release()
        if self._applied:
            self._log(f"effective {self._applied}")
        if self._tried and self._tried == content_hash(self.candidate):
            self._log(f"tried {self._tried} {_verdict(rejection(self.candidate))}")

    def try_candidate(self) -> None:
        """Try new candidates, and have a slurmctld that runs take over new files."""
        if self._busy:
            return
        proposed, wanted = content_hash(self.candidate), content_hash(self.etc)
        if self.candidate and proposed != self._tried:
            self._try(proposed)
        asked = self.asked if self.asked != self._done else ""
        if wanted not in (self._applied, self._rejected) and self.live == wanted and self._applied:
            # slurmctld has the change already, by a request.
            self.has(self.etc)
            self._takes(wanted)
        elif wanted not in (self._applied, self._rejected) and self.restarts == wanted:
            if self._pending != wanted:
                # What slurmctld starts with is not known.
                self._applied, self._pending = "", wanted
                self._log(f"pending {wanted}")
        elif wanted not in (self._applied, self._rejected) or (asked and self.up()):
            self._reconfigure(wanted, dict(self.etc), asked)
        elif wanted == self._applied and self._rejected:
            self._rejected = ""
            self._log(f"effective {wanted}")

    def _try(self, proposed: str) -> None:
        if self.unsure:
            self._log(f"untried {proposed}: slurmctld had not started after 15 s")
            return
        self._tried, words = proposed, rejection(self.candidate)
        if words is None:
            self.taken(self.candidate)
        self._log(f"tried {proposed} {_verdict(words)}")

    def _reconfigure(self, wanted: str, files: Files, asked: str) -> None:
        if not self.up():
            self._away(wanted)
            return
        self._busy, life = True, self._lives
        self.spend(lambda: self._reconfigured(wanted, files, asked, life))

    def _reconfigured(self, wanted: str, files: Files, asked: str, life: int) -> None:
        words = rejection(files)
        if life != self._lives:
            # The container that asked is gone; slurmctld does it all the same.
            if words is None and self.up():
                self.reads(files)
            return
        self._busy = False
        if not self.up():
            self._away(wanted)
            return
        if words is None:
            self.reads(files)
            if wanted != self._applied:
                self._takes(wanted)
        elif wanted != self._applied:
            self._rejected = wanted
            self._log(f"refused {wanted}: {words}")
        if asked:
            self._done = asked
            self._log(f"reconfigured {asked} {_verdict(words)}")
        self.try_candidate()

    def _away(self, wanted: str) -> None:
        if wanted != self._applied:
            # What slurmctld starts with is not known.
            self._applied = ""
        self._log(f"waits {wanted}: Unable to contact slurm controller")

    def _takes(self, wanted: str) -> None:
        self._applied, self._rejected, self._pending = wanted, "", ""
        self._log(f"effective {wanted}")

    def _log_release(self) -> None:
        if self.release:
            self._log(f"slurm {self.release}")

    def _log(self, line: str) -> None:
        self.lines.append(f"penstock: {line}")


def _verdict(words: str | None) -> str:
    return "ok" if words is None else f"refused: {words}"


class Sidecars:
    """Containers of an API server without kubelets: each sees the present files at each request."""

    def __init__(
        self,
        find: Callable[[str, str, str], Json | None],
        reads: Callable[[Json, Files], None] = lambda _pod, _files: None,
        etc: Callable[[Json], Files | None] = lambda _pod: None,
    ) -> None:
        """`reads` is called with slurmctld's pod and what its slurmctld reads.

        `etc` gives what a pod has at /etc/slurm where no projected volume has it: in a jail.
        """
        self._find = find
        self._reads = reads
        self._etc = etc
        self._of: dict[str, Sidecar] = {}
        self._slurmdbds = Slurmdbds(find)

    def log(self, namespace: str, name: str, container: str) -> str | None:
        """The log of a pod's container; None when there is no such pod."""
        if container in slurmdbd.CONTAINERS:
            return self._slurmdbds.log(namespace, name)
        pod = self._find("/pods", namespace, name)
        if pod is None:
            return None

        data = data_of(self._find, namespace)
        uid = pod["metadata"]["uid"]
        one = self._of.get(uid)
        etc = self._etc(pod)
        if one is None:
            one = self._of[uid] = Sidecar(
                mounted(pod, ETC, data) if etc is None else etc,
                reads=lambda files: self._reads(pod, files),
                release=release(pod),
            )
        one.mount(pod, data)
        if etc is not None:
            one.etc = etc
        one.try_candidate()
        return "\n".join(one.lines)
