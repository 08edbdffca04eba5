"""What the first process of a node mounts and runs: written by `files`, read by `init`."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Component:
    """One process of a node."""

    name: str
    command: tuple[str, ...]
    needs: tuple[str, ...] = ()
    """What must be there before it starts: `host:port` or a socket that accepts connections, or
    a file."""


@dataclass(frozen=True)
class Plan:
    """One node as its first process sees it."""

    name: str
    lower: str
    """The cached file tree below what the node writes."""
    overlay: bool
    """Whether `lower` is laid under by overlayfs; else it was copied."""
    cgroups: bool
    """Whether the machine's cgroups are shown inside."""
    components: tuple[Component, ...]
    binds: tuple[tuple[str, str], ...] = ()
    """Folders of the machine that the node has too: where they are, and where it has them."""
    owner: tuple[int, int] | None = None
    """Pid and start time of the process that the node ends with, as in `process.Process`."""
