"""Waits until the checks of a SlurmCluster that run at creation are done; fails with the first."""

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
PATH = f"/apis/slurm.nebius.ai/v1alpha1/namespaces/{os.environ['NAMESPACE']}/activechecks"
CLUSTER = os.environ["SLURM_CLUSTER_REF_NAME"]
DONE, FAILED = ("Complete", "Skipped", "Cancelled"), ("Failed", "Error")
POLL_SECONDS = 5


def checks() -> list[dict[str, Any]]:
    """Return the ActiveChecks of the cluster that run at creation."""
    headers = {"Authorization": f"Bearer {(ACCOUNT / 'token').read_text().strip()}"}
    trusted = ssl.create_default_context(cafile=ACCOUNT / "ca.crt")
    server = http.client.HTTPSConnection(HOST, PORT, context=trusted, timeout=30)
    with contextlib.closing(server):
        server.request("GET", PATH, headers=headers)
        reply = server.getresponse()
        text = reply.read()
    if reply.status != http.HTTPStatus.OK:
        raise OSError(f"the API server answers {reply.status}: {text[:300]!r}")
    found = json.loads(text)["items"]
    return [
        one
        for one in found
        if one["spec"]["slurmClusterRefName"] == CLUSTER
        and one["spec"].get("runAfterCreation", True)
    ]


def result(check: dict[str, Any]) -> str:
    """Return what the last run of a check came to; empty before the first."""
    status = check.get("status", {})
    if check["spec"].get("checkType") == "slurmJob":
        return status.get("slurmJobsStatus", {}).get("lastRunStatus", "")
    return status.get("k8sJobsStatus", {}).get("lastJobStatus", "")


def words(check: dict[str, Any]) -> str:
    """Return the message about the last run."""
    found = check.get("status", {}).get("conditions", [])
    return next((one["message"] for one in found if one["type"] == "LastRunPassed"), "")


def main() -> int:
    """Return the exit status."""
    said = ""
    while True:
        try:
            found = checks()
        except (OSError, ValueError, http.client.HTTPException) as error:
            print(f"cannot read the checks: {error}", flush=True)
            time.sleep(POLL_SECONDS)
            continue
        for one in found:
            if result(one) in FAILED:
                print(f"{one['metadata']['name']} is {result(one)}: {words(one)}", flush=True)
                return 1
        left = [one["metadata"]["name"] for one in found if result(one) not in DONE]
        if not left:
            print(f"{len(found)} checks are done", flush=True)
            return 0
        if said != (said := f"waiting for {', '.join(left)}"):
            print(said, flush=True)
        time.sleep(POLL_SECONDS)


sys.exit(main())
