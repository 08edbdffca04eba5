"""All that nodes and their images are made of, compiled and fetched before anybody waits for it."""

from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed

from penstock.local import programs, versions
from penstock.local.components import Size, programs_of
from penstock.local.golang import Program, compiled
from penstock.local.images import build_all, build_jail, build_slurm
from penstock.local.linux import require_root_linux
from penstock.local.recipes import OLDEST, Release
from penstock.local.root import node_root


def prepare(
    sizes: Collection[Size],
    also: Sequence[Program] = (),
    releases: Sequence[Release] = (),
    *,
    jail: bool = False,
    kubernetes: str = "",
) -> None:
    """Fill the cache with what it lacks: the programs of nodes of these sizes, root and images.

    And the programs that are wanted `also`, images of further `releases` of Slurm, and those of a
    SlurmCluster (`jail`); `kubernetes` is a minor version. With an empty cache it takes minutes,
    and seconds to bring a node up after that. Raises LocalError.
    """
    require_root_linux()
    release = versions.kubernetes(kubernetes)
    of_nodes = {program.name: program for size in sizes for program in programs_of(size, release)}
    wanted = (*of_nodes.values(), *also)
    # A compiler alone leaves a processor idle while it fetches and links. Programs of Kubernetes
    # share most of what is compiled, so they come one after the other; no other shares much.
    rows = (
        [one for one in wanted if one.staging],
        [one for one in wanted if not one.staging],
    )
    with ThreadPoolExecutor(len(rows)) as pool:
        doing = [pool.submit(_compile, rows[0]), pool.submit(_build, rows[1], releases, jail=jail)]
        for row in as_completed(doing):
            row.result()


def everything(kubernetes: str = "") -> None:
    """Fill the cache with all that the tests need, on that minor version. Raises LocalError."""
    also = (
        programs.METRICS_SERVER_PROGRAM,
        programs.HELM_PROGRAM,
        programs.PROMETHEUS_PROGRAM,
        programs.PROMTOOL,
    )
    prepare(tuple(Size), also=also, releases=(OLDEST,), jail=True, kubernetes=kubernetes)


def _compile(wanted: Sequence[Program]) -> None:
    for program in wanted:
        compiled(program)


def _build(wanted: Sequence[Program], releases: Sequence[Release], *, jail: bool) -> None:
    """The root and the images, which mostly wait for an archive, and then what is to compile."""
    node_root()
    build_all()
    for release in releases:
        build_slurm(release)
    if jail:
        build_jail()
    _compile(wanted)
