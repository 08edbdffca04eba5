"""All that nodes and their images are made of, compiled and fetched before anybody waits for it."""

from penstock.local import programs
from penstock.local.components import PROGRAMS
from penstock.local.golang import compiled
from penstock.local.images import build_all
from penstock.local.linux import require_root_linux
from penstock.local.root import node_root


def prepare() -> None:
    """Fill the cache with what it lacks: the programs of all sizes, Helm, the root, the images.

    With an empty cache it takes minutes, and seconds to bring a node up after that. Raises
    LocalError.
    """
    require_root_linux()
    wanted = {program.name: program for size in PROGRAMS.values() for program in size}
    for program in (*wanted.values(), programs.HELM_PROGRAM):
        compiled(program)
    node_root()
    build_all()
