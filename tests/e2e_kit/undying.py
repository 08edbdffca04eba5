"""An operator that starts again at once when it is killed.

The kubelet waits longer and longer before it starts a container again that keeps ending. So that
many kills fall into a short time, a parent in the operator's container starts it again.
"""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import contextmanager

from e2e_kit.api import Json
from e2e_kit.site import OPERATOR, Site
from penstock.local.install import SYSTEM

COMMAND = "-m penstock.controllers"
"""What the operator's command line has, and its parent's has not."""
PARENT = """
import signal, subprocess, sys
module = ".".join(("penstock", "controllers"))
child, ending = None, False
def end(number, frame):
    global ending
    ending = True
    if child is not None:
        child.terminate()
signal.signal(signal.SIGTERM, end)
while not ending:
    child = subprocess.Popen([sys.executable, "-m", module, *sys.argv[1:]])
    if ending:
        child.terminate()
    child.wait()
"""


@contextmanager
def undying_operator(site: Site) -> Generator[str]:
    """While it lasts the operator's pod, whose uid this gives, outlives every kill."""
    path = "/spec/template/spec/containers/0/command"
    command = ["/usr/bin/python3", "-c", PARENT]
    _patch(site, {"op": "add", "path": path, "value": command})
    try:
        yield site.operator_pod()["metadata"]["uid"]
    finally:
        _patch(site, {"op": "remove", "path": path})
        site.operator_pod()


def _patch(site: Site, change: Json) -> None:
    deployment = ("-n", SYSTEM, f"deployment/{OPERATOR}")
    site.kubectl("patch", *deployment, "--type=json", "-p", json.dumps([change]))
    site.kubectl("rollout", "status", *deployment, "--timeout=90s")
