"""Runs the checks of a SlurmCluster again that run at creation, each by a Job of its CronJob."""

import contextlib
import http.client
import json
import os
import ssl
import sys
import time
from pathlib import Path
from typing import Any

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
HOST = os.environ["KUBERNETES_SERVICE_HOST"]
PORT = int(os.environ["KUBERNETES_SERVICE_PORT"])
SPACE, CLUSTER = os.environ["NAMESPACE"], os.environ["SLURM_CLUSTER_REF_NAME"]
CHECKS = f"/apis/slurm.nebius.ai/v1alpha1/namespaces/{SPACE}/activechecks"
BATCH = f"/apis/batch/v1/namespaces/{SPACE}"
LONGEST_NAME = 63


def ask(path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the API server's answer: to POST where there is a body."""
    headers = {
        "Authorization": f"Bearer {(ACCOUNT / 'token').read_text().strip()}",
        "Content-Type": "application/json",
    }
    trusted = ssl.create_default_context(cafile=ACCOUNT / "ca.crt")
    server = http.client.HTTPSConnection(HOST, PORT, context=trusted, timeout=30)
    with contextlib.closing(server):
        method, data = ("POST", json.dumps(body)) if body else ("GET", None)
        server.request(method, path, data, headers)
        reply = server.getresponse()
        text = reply.read()
    if reply.status not in (http.HTTPStatus.OK, http.HTTPStatus.CREATED):
        raise OSError(f"the API server answers {reply.status}: {text[:300]!r}")
    return json.loads(text)


def job(cron: dict[str, Any], stamp: int) -> dict[str, Any]:
    """Return a Job of a CronJob, as `kubectl create job --from` makes it."""
    meta, template = cron["metadata"], cron["spec"]["jobTemplate"]
    owner = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
    }
    suffix = f"-{stamp}"
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            **template.get("metadata", {}),
            "name": meta["name"][: LONGEST_NAME - len(suffix)] + suffix,
            "ownerReferences": [owner],
        },
        "spec": template["spec"],
    }


def main() -> int:
    """Return the exit status."""
    stamp, failed = int(time.time()), 0
    for check in ask(CHECKS)["items"]:
        spec, name = check["spec"], check["metadata"]["name"]
        if spec["slurmClusterRefName"] != CLUSTER or not spec.get("runAfterCreation", True):
            continue
        try:
            made = ask(f"{BATCH}/jobs", job(ask(f"{BATCH}/cronjobs/{name}"), stamp))
            print(f"created Job {made['metadata']['name']}")
        except OSError as error:
            print(f"{name}: {error}")
            failed += 1
    return 1 if failed else 0


sys.exit(main())
