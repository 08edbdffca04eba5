"""Draws docs/pictures from data: `cd tests && python -m docs_kit.diagrams` writes them.

Boxes have a place on a grid of pixels; arrows go from side to side. Each picture has colours for a
light and a dark page, and its own background, so that it is legible on either.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "docs/pictures"
WIDTH = 680
LINE = 18
STYLE = """
.page { fill: #ffffff; } text { font: 14px system-ui, sans-serif; fill: #1c2733; }
.box { fill: #eef3f8; stroke: #5b7a99; } .pod { fill: #e3f0e6; stroke: #4d8a5c; }
.store { fill: #fbf0da; stroke: #b0833b; } .bad { fill: #fae3e1; stroke: #b5544c; }
.group { fill: none; stroke: #8a97a5; stroke-dasharray: 5 4; } .name { font-weight: 600; }
.small { font-size: 12.5px; } .way { fill: none; stroke: #46586a; stroke-width: 1.6; }
.tip { fill: #46586a; } .word { font-size: 12.5px; paint-order: stroke; stroke: #ffffff;
stroke-width: 5px; stroke-linejoin: round; }
@media (prefers-color-scheme: dark) {
.page { fill: #171c22; } text { fill: #e3e9ef; } .box { fill: #24303d; stroke: #7d9bb8; }
.pod { fill: #20352a; stroke: #6fae80; } .store { fill: #3a2f1a; stroke: #c99f57; }
.bad { fill: #412523; stroke: #d07a72; } .group { stroke: #75828f; }
.way { stroke: #a8b8c8; } .tip { fill: #a8b8c8; } .word { stroke: #171c22; } }
"""


@dataclass(frozen=True)
class Box:
    """A rectangle with a name and smaller lines below it. A `group` surrounds others."""

    x: int
    y: int
    w: int
    h: int
    text: str
    kind: str = "box"

    def side(self, where: str) -> tuple[int, int]:
        """Return a point of the border: `n`, `s`, `e`, `w`, and a percentage along that side."""
        part = int(where[1:] or 50)
        across, down = self.x + self.w * part // 100, self.y + self.h * part // 100
        return {
            "n": (across, self.y),
            "s": (across, self.y + self.h),
            "w": (self.x, down),
            "e": (self.x + self.w, down),
        }[where[0]]


@dataclass(frozen=True)
class Arrow:
    """A way between two boxes, `name.side`, over further points, with a label at its middle."""

    start: str
    end: str
    label: str = ""
    over: tuple[tuple[int, int], ...] = ()
    shift: tuple[int, int] = (0, -6)


@dataclass(frozen=True)
class Picture:
    """Everything that one file shows. `title` is read to people who do not see it."""

    title: str
    height: int
    boxes: dict[str, Box]
    arrows: tuple[Arrow, ...]


def draw(picture: Picture) -> str:
    """Return the SVG of a picture."""
    size = f'viewBox="0 0 {WIDTH} {picture.height}" width="{WIDTH}" height="{picture.height}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">',
        f"<title>{escape(picture.title)}</title>",
        f"<style>{STYLE}</style>",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path class="tip" d="M0 0L8 4L0 8z"/></marker></defs>',
        f'<rect class="page" width="{WIDTH}" height="{picture.height}" rx="8"/>',
    ]
    for box in picture.boxes.values():
        lines += _box(box)
    for arrow in picture.arrows:
        lines += _arrow(arrow, picture.boxes)
    return "\n".join([*lines, "</svg>", ""])


def _box(box: Box) -> Iterator[str]:
    place = f'x="{box.x}" y="{box.y}" width="{box.w}" height="{box.h}" rx="6"'
    yield f'<rect class="{box.kind}" {place}/>'
    lines = box.text.splitlines()
    group = box.kind == "group"
    top = box.y + 20 if group else box.y + (box.h - LINE * len(lines)) // 2 + 14
    across = box.x + 12 if group else box.x + box.w // 2
    anchor = "start" if group else "middle"
    for number, line in enumerate(lines):
        style = "small" if number else "name"
        at = f'x="{across}" y="{top + LINE * number}" text-anchor="{anchor}"'
        yield f'<text class="{style}" {at}>{escape(line)}</text>'


def _arrow(arrow: Arrow, boxes: dict[str, Box]) -> Iterator[str]:
    points = [_point(arrow.start, boxes), *arrow.over, _point(arrow.end, boxes)]
    path = "M" + "L".join(f"{x} {y}" for x, y in points)
    yield f'<path class="way" marker-end="url(#tip)" d="{path}"/>'
    if arrow.label:
        one, other = points[(len(points) - 1) // 2], points[(len(points) - 1) // 2 + 1]
        x = (one[0] + other[0]) // 2 + arrow.shift[0]
        y = (one[1] + other[1]) // 2 + arrow.shift[1]
        lines = arrow.label.splitlines()
        for number, line in enumerate(lines):
            at = f'x="{x}" y="{y + 16 * number}" text-anchor="middle"'
            yield f'<text class="word" {at}>{escape(line)}</text>'


def _point(name: str, boxes: dict[str, Box]) -> tuple[int, int]:
    box, _, side = name.partition(".")
    return boxes[box].side(side)


PICTURES = {
    "cluster-slinky": Picture(
        "A cluster of slinky.slurm.net: who talks to whom",
        520,
        {
            "users": Box(20, 20, 130, 50, "users\nssh"),
            "admin": Box(530, 20, 130, 50, "you\nkubectl, Helm"),
            "api": Box(300, 20, 170, 50, "Kubernetes API"),
            "operator": Box(300, 120, 170, 56, "operator\none pod for all clusters", "pod"),
            "space": Box(20, 215, 640, 290, "namespace of the cluster", "group"),
            "login": Box(40, 250, 150, 64, "login pods\nsshd, sackd\n(LoginSet)", "pod"),
            "restd": Box(300, 250, 170, 64, "slurmrestd\n(RestApi)", "pod"),
            "dbd": Box(530, 250, 115, 64, "slurmdbd\n(Accounting)\noptional", "pod"),
            "ctld": Box(300, 370, 170, 64, "slurmctld\n+ reconfigure\n(Controller)", "pod"),
            "state": Box(530, 376, 115, 52, "PVC\nqueue and jobs", "store"),
            "workers": Box(40, 424, 170, 66, "worker pods\nslurmd\n(NodeSets)", "pod"),
        },
        (
            Arrow("users.s", "login.n44", "22", shift=(16, 0)),
            Arrow("admin.w", "api.e", "apply"),
            Arrow("operator.n", "api.s", "watch, write", shift=(48, 6)),
            Arrow("operator.s", "restd.n", "REST with a token:\ndrained? empty?", shift=(70, -2)),
            Arrow("restd.s", "ctld.n", "6817", shift=(22, 4)),
            Arrow("login.e70", "ctld.w30", "sbatch, sinfo: 6817", shift=(0, -10)),
            Arrow("ctld.w80", "workers.e30", "jobs: 6818", shift=(6, 22)),
            Arrow("login.s", "workers.n44", "srun", shift=(-22, 4)),
            Arrow("ctld.e30", "dbd.s", "6819", shift=(-10, -8)),
            Arrow("ctld.e70", "state.w60"),
        ),
    ),
    "cluster-slurmcluster": Picture(
        "A SlurmCluster: daemons around the jail",
        560,
        {
            "users": Box(20, 20, 130, 50, "users\nssh"),
            "api": Box(480, 20, 180, 50, "Kubernetes API"),
            "operator": Box(250, 20, 170, 50, "operator", "pod"),
            "space": Box(20, 105, 640, 435, "namespace of the cluster", "group"),
            "login": Box(40, 150, 150, 60, "login-0\nsshd, munge", "pod"),
            "restd": Box(250, 150, 170, 60, "rest\nslurmrestd", "pod"),
            "ctld": Box(250, 270, 170, 60, "controller-0\nslurmctld, munge", "pod"),
            "workers": Box(40, 270, 150, 60, "worker pods\nslurmd, munge", "pod"),
            "writer": Box(480, 150, 160, 60, "sconfigcontroller\nwrites Slurm's files", "pod"),
            "job": Box(480, 270, 160, 60, "Job populate-jail\nonce", "pod"),
            "jail": Box(
                40,
                430,
                600,
                90,
                "the jail: one shared volume (ReadWriteMany)\n"
                "/ of every job and every session: /usr, /home, /opt, accounts\n"
                "/etc/slurm: written by sconfigcontroller, read-only for users",
                "store",
            ),
        },
        (
            Arrow("users.s", "login.n30", "22", shift=(-18, -12)),
            Arrow("operator.e", "api.w"),
            Arrow("operator.s", "restd.n", "REST", shift=(26, 10)),
            Arrow("restd.s", "ctld.n", "6817", shift=(24, 4)),
            Arrow("login.e", "ctld.n20", "6817", shift=(-8, -8)),
            Arrow("ctld.w", "workers.e", "6818", shift=(0, -6)),
            Arrow("login.s", "workers.n", "srun", shift=(-24, 4)),
            Arrow("workers.s", "jail.n12", "jobs: pivot_root", shift=(54, 4)),
            Arrow("ctld.s", "jail.n49", "reads files", shift=(40, 4)),
            Arrow("job.s", "jail.n86", "copies a root", shift=(-48, 4)),
            Arrow("writer.e", "jail.n98", "", ((648, 180), (648, 400), (628, 400))),
        ),
    ),
    "worker-life": Picture(
        "The life of a worker, from create to delete",
        700,
        {
            "pvc": Box(40, 20, 250, 50, "PVCs, then the pod\nname of the slot: compute-3", "box"),
            "start": Box(40, 110, 250, 50, "slurmd registers\nSlurm node: IDLE", "pod"),
            "ready": Box(40, 200, 250, 50, "Ready: runs jobs\nIDLE, MIXED, ALLOCATED", "pod"),
            "why": Box(
                380,
                190,
                260,
                70,
                "a reason to go\nscale-in, update, cordon of the node,\ndeleted NodeSet",
                "box",
            ),
            "mark": Box(
                380, 310, 260, 50, "annotation of the pod\nthe operator's intention", "box"
            ),
            "drain": Box(380, 400, 260, 50, "drain in Slurm\nno new job starts", "pod"),
            "wait": Box(380, 490, 260, 50, "wait for the jobs\nhowever long", "pod"),
            "ask": Box(380, 580, 260, 60, "asked again just now:\ndrained and empty?", "box"),
            "delete": Box(
                40,
                490,
                250,
                64,
                "delete the pod\nwith its uid and version\nas preconditions",
                "box",
            ),
            "record": Box(40, 400, 250, 50, "delete the Slurm node\nPVCs as their policy", "box"),
            "stay": Box(
                40,
                600,
                250,
                64,
                "keep the pod\nSlurm unknown, or a job came:\nnothing is deleted on a guess",
                "bad",
            ),
        },
        (
            Arrow("pvc.s", "start.n"),
            Arrow("start.s", "ready.n"),
            Arrow("ready.e", "why.w"),
            Arrow("why.s", "mark.n"),
            Arrow("mark.s", "drain.n"),
            Arrow("drain.s", "wait.n"),
            Arrow("wait.s", "ask.n"),
            Arrow("ask.w30", "delete.e60", "yes", shift=(0, -8)),
            Arrow("ask.w80", "stay.e50", "no", shift=(0, 18)),
            Arrow("delete.n", "record.s"),
            Arrow(
                "record.w",
                "pvc.w",
                "an update: the next pod of the slot",
                ((18, 425), (18, 45)),
                (138, 100),
            ),
        ),
    ),
    "configuration": Picture(
        "A configuration change is a transaction",
        640,
        {
            "spec": Box(210, 20, 260, 50, "spec changes\nextraConf, partitions, files"),
            "render": Box(210, 110, 260, 50, "desired files\nrendered slurm.conf and others"),
            "candidate": Box(210, 200, 260, 50, "ConfigMap candidate", "store"),
            "trial": Box(
                210,
                290,
                260,
                60,
                "trial start of a second slurmctld\nin the sidecar reconfigure",
                "pod",
            ),
            "rejected": Box(
                20,
                400,
                200,
                80,
                "rejected\nConfigValid is False and\n"
                "quotes slurmctld; jobs go on\nwith the active files",
                "bad",
            ),
            "startup": Box(270, 400, 200, 50, "ConfigMap startup", "store"),
            "apply": Box(
                270, 490, 200, 50, "reconfigure, or restart\nby the key that changed", "pod"
            ),
            "good": Box(270, 575, 200, 50, "slurmctld serves:\nConfigMap last known good", "store"),
            "back": Box(510, 484, 150, 62, "does not start:\nrestore last known\ngood", "bad"),
            "rest": Box(510, 110, 150, 50, "partitions only:\none REST call", "pod"),
        },
        (
            Arrow("spec.s", "render.n"),
            Arrow("render.s", "candidate.n"),
            Arrow("render.e", "rest.w"),
            Arrow("candidate.s", "trial.n"),
            Arrow("trial.s20", "rejected.n60", "rejected", shift=(-34, 4)),
            Arrow("trial.s62", "startup.n50", "accepted", shift=(40, 4)),
            Arrow("startup.s", "apply.n"),
            Arrow("apply.s", "good.n"),
            Arrow("apply.e", "back.w"),
            Arrow("back.n", "startup.e", "", ((585, 425),)),
            Arrow("rest.s", "startup.e30", "then the file", ((585, 415),), (48, -60)),
        ),
    ),
    "jail": Picture(
        "The jail: one root for jobs and sessions, and what stays outside",
        560,
        {
            "worker": Box(20, 20, 310, 250, "worker pod", "group"),
            "login": Box(350, 20, 310, 250, "login pod", "group"),
            "image1": Box(
                40, 60, 270, 56, "root of the image\nslurmd, munge's socket, plug-ins", "box"
            ),
            "step": Box(
                40,
                180,
                270,
                64,
                "a job step\nroot is /mnt/jail (chroot.so)\nfew capabilities",
                "pod",
            ),
            "image2": Box(370, 60, 270, 56, "root of the image\nsshd", "box"),
            "session": Box(
                370,
                180,
                270,
                64,
                "a session\nroot is /mnt/jail (ChrootDirectory)\nfew capabilities",
                "pod",
            ),
            "own": Box(
                20,
                300,
                310,
                90,
                "of the pod, mounted into the jail\n/proc, /dev, /run, /tmp, /etc/hosts\n"
                "/var/spool/slurmd, jailSubMounts\nread-only: clients, plug-ins, /etc/slurm",
                "box",
            ),
            "writer": Box(
                350, 300, 310, 56, "sconfigcontroller\nwrites /etc/slurm, file by file", "pod"
            ),
            "volume": Box(
                20,
                440,
                640,
                96,
                "shared volume\n"
                "/usr, /opt, /home, /root, /var, accounts in /etc: writable for root of the jail\n"
                "a package that one job installs is on every worker and login at once\n"
                "filled once by the Job populate-jail",
                "store",
            ),
        },
        (
            Arrow("image1.s", "step.n", "pivot_root", shift=(44, 4)),
            Arrow("image2.s", "session.n", "ssh", shift=(22, 4)),
            Arrow("step.s", "own.n43"),
            Arrow("own.s", "volume.n24"),
            Arrow("writer.s", "volume.n76"),
            Arrow(
                "session.s30", "volume.n62", "", ((451, 285), (340, 285), (340, 410), (417, 410))
            ),
        ),
    ),
}


def main() -> None:
    """Write all pictures."""
    FOLDER.mkdir(exist_ok=True)
    for name, picture in PICTURES.items():
        (FOLDER / f"{name}.svg").write_text(draw(picture))


if __name__ == "__main__":
    main()
