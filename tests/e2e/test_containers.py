"""Jobs in containers: the contract of Pyxis and enroot, and Slurm's own `--container` with runc.

The plug-in and enroot are stand-ins (`tests/fixtures/pyxis`) in images like upstream's. Real are
Slurm, the registry, squashfs files, namespaces and mounts, and runc. Scenarios S042, S044 to S052;
feature row 54.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from e2e_kit import images, manifests, registry
from e2e_kit.api import Json, condition
from e2e_kit.cluster import Cluster
from e2e_kit.site import Site, eventually
from penstock.local.errors import LocalError

LONG_S = 180.0
SLURMD, LOGIN = "localhost/penstock-test/slurmd-pyxis:1", "localhost/penstock-test/login-pyxis:1"
IMAGE = f"{registry.NAME}:5000#{registry.HELD}"
INSIDE = 'PRETTY_NAME="an image for jobs"'
WORKERS = ("compute-0", "compute-1")
PLUGINS = "include /usr/share/pyxis/*\n"
ENROOT = """ENROOT_ALLOW_HTTP y
ENROOT_CACHE_PATH /var/cache/enroot
ENROOT_CONFIG_PATH /etc/enroot/credentials
ENROOT_SQUASH_OPTIONS -comp {}
"""
_RUNC = "runc --rootless=true --root=/tmp/runc-%U"
# With a task's number (%t) in it slurmstepd kills another name than it ran: that of task -1. Where
# processes are tracked by cgroups they are killed all the same.
_ID = "%n.%u.%j.%s"
OCI = f"""EnvExclude="^(SLURM_CONF|SLURM_CONF_SERVER)="
RunTimeEnvExclude="^(SLURM_CONF|SLURM_CONF_SERVER)="
RunTimeQuery="{_RUNC} state {_ID}"
RunTimeKill="{_RUNC} kill {_ID} SIGKILL"
RunTimeDelete="{_RUNC} delete --force {_ID}"
RunTimeRun="{_RUNC} run {_ID} -b %b"
"""
GPUS = "AutoDetect=off\nNodeName=compute-[0-1] Name=gpu Type=a100 File=/dev/nvidia[0-1]\n"
USER = ("setpriv", "--reuid=401", "--regid=401", "--clear-groups", "env", "HOME=/tmp")

pytestmark = pytest.mark.timeout(600)


@dataclass(frozen=True)
class Place:
    """A cluster with images like slurmd-pyxis and login-pyxis, and a registry."""

    cluster: Cluster

    def login(self, script: str) -> str:
        """A shell script in a login pod, as root."""
        return self.cluster.kubectl("exec", "deploy/login", "-c", "login", "--", "sh", "-c", script)

    def srun(self, *words: str, partition: str = "compute") -> list[str]:
        """Lines of a step's output, by `srun` of an ordinary user in a login pod."""
        command = ("srun", "--quiet", "--mem=50", "--chdir=/tmp", f"--partition={partition}")
        where = ("exec", "deploy/login", "-c", "login", "--")
        return self.cluster.kubectl(*where, *USER, *command, *words).splitlines()

    def fails(self, *words: str, partition: str = "compute") -> str:
        """What such a step that has to fail said."""
        with pytest.raises(LocalError) as caught:
            self.srun(*words, partition=partition)
        return str(caught.value)

    def calls(self, node: str) -> list[str]:
        """How enroot was called on a worker so far, without its environment."""
        lines = self.cluster.on(node, "cat /run/enroot/calls").splitlines()
        return [line for line in lines if not line.startswith("env ")]

    def listed(self, node: str) -> list[str]:
        """The user's containers on a worker."""
        return self.cluster.on(node, f"{' '.join(USER)} enroot list").split()

    def shared(self, script: str) -> str:
        """A shell script in /shared, on a worker and as the user."""
        return self.cluster.on(WORKERS[0], f"cd /shared && {' '.join(USER)} sh -ec '{script}'")


def files(plugins: str = PLUGINS) -> Json:
    data = {"plugstack.conf": plugins, "oci.conf": OCI, "gres.conf": GPUS}
    return manifests.config_map("containers", **data)


def enroot(compression: str = "lz4") -> Json:
    return manifests.config_map("enroot", **{"site.conf": ENROOT.format(compression)})


def credentials() -> Json:
    data = {".credentials": registry.CREDENTIALS}
    meta = {"name": "enroot-credentials"}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "stringData": data}


def mounted(shared: str, **more: str) -> tuple[list[Json], list[Json]]:
    """Volumes and mounts of enroot's settings, the credentials and /shared; devices besides."""
    volumes: list[Json] = [
        {"name": "enroot", "configMap": {"name": "enroot"}},
        {"name": "credentials", "secret": {"secretName": "enroot-credentials"}},
        {"name": "shared", "hostPath": {"path": shared, "type": "Directory"}},
    ]
    mounts: list[Json] = [
        {"name": "enroot", "mountPath": "/etc/enroot/enroot.conf.d"},
        {"name": "credentials", "mountPath": "/etc/enroot/credentials"},
        {"name": "shared", "mountPath": "/shared"},
    ]
    for name, source in more.items():
        volumes.append({"name": name, "hostPath": {"path": source, "type": "CharDevice"}})
        mounts.append({"name": name, "mountPath": f"/dev/{name}"})
    return volumes, mounts


def workers(shared: str) -> Json:
    """Workers as the scenario has them: privileged, a claim for enroot's cache, two GPUs."""
    volumes, mounts = mounted(shared, nvidia0="/dev/zero", nvidia1="/dev/full")
    claim: Json = {
        "metadata": {"name": "enroot-cache"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Mi"}},
        },
    }
    slurmd = {
        "image": SLURMD,
        "imagePullPolicy": "Never",
        "securityContext": {"privileged": True},
        "volumeMounts": [*mounts, {"name": "enroot-cache", "mountPath": "/var/cache/enroot"}],
    }
    return manifests.nodeset(
        2,
        extraConf="Gres=gpu:a100:2",
        slurmd=slurmd,
        template={"spec": {"volumes": volumes}},
        volumeClaimTemplates=[claim],
    )


def bare(shared: str) -> Json:
    """A worker with the image and without the rights that it needs."""
    volumes, mounts = mounted(shared)
    context: Json = {
        "privileged": False,
        "capabilities": {"add": []},
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    slurmd: Json = {
        "image": SLURMD,
        "imagePullPolicy": "Never",
        "securityContext": context,
        "volumeMounts": mounts,
    }
    return manifests.nodeset(
        1,
        "bare",
        slurmd=slurmd,
        template={"spec": {"volumes": volumes}},
        partition={"enabled": True, "config": "MaxTime=UNLIMITED"},
    )


@pytest.fixture(scope="module")
def place(site: Site, clusters: Callable[[str], Cluster]) -> Place:
    images.load(site.node, registry.IMAGE)
    images.give(site.node, images.build("pyxis", {SLURMD: "slurmd", LOGIN: "login"}))
    cluster = clusters("containers")
    volumes, mounts = mounted(cluster.shared)
    login = manifests.loginset(
        login={
            "image": LOGIN,
            "imagePullPolicy": "Never",
            "securityContext": {"privileged": True},
            "volumeMounts": mounts,
        },
        template={"spec": {"volumes": volumes}},
    )
    cluster.create(
        files(),
        enroot(),
        credentials(),
        *registry.objects(),
        manifests.controller(
            manifests.EXTRA_CONF + "GresTypes=gpu\n",
            configFileRefs=[{"name": "slurm-files"}, {"name": "containers"}],
        ),
        manifests.restapi(),
        workers(cluster.shared),
        bare(cluster.shared),
        login,
    )
    registry.fill(cluster)
    cluster.until_idle(*WORKERS, "bare-0", timeout=LONG_S)
    cluster.until_ready("loginsets", "login", LONG_S)
    cluster.until_ready("controllers", manifests.NAME, LONG_S)
    return Place(cluster)


def test_plugstack_conf_gives_logins_and_workers_the_options(place: Place) -> None:
    """S042, feature row 54: by the file that the images bring, in a file of the Controller's."""
    assert "--container-image=" in place.login("srun --help")
    for node in (*WORKERS, "bare-0"):
        assert "--container-image=" in place.cluster.on(node, "srun --help")
    assert "without --container-image" in place.fails("--container-save=/shared/no", "true")


def test_a_step_runs_in_an_image_of_a_private_registry_on_each_node(place: Place) -> None:
    """S046, S052: no pod is made, and no container is left."""
    before = place.cluster.uids()
    assert place.srun("-N2", f"--container-image={IMAGE}", "cat", "/etc/os-release") == [INSIDE] * 2
    assert place.cluster.uids() == before
    for node in WORKERS:
        eventually("no container is left", lambda node=node: not place.listed(node))
        commands = [line.split()[:2] for line in place.calls(node)]
        order = ["import", "create", "start", "remove"]
        assert commands[:4] == [["401", command] for command in order]
    nowhere = ("env", "ENROOT_CONFIG_PATH=/nowhere")
    where = ("exec", "deploy/login", "-c", "login", "--")
    command = ("srun", "--mem=50", "--chdir=/tmp", f"--container-image={IMAGE}", "true")
    with pytest.raises(LocalError, match="returned error code: 401"):
        place.cluster.kubectl(*where, *USER, *nowhere, *command)


def test_a_container_is_there_as_long_as_its_step(place: Place) -> None:
    """S046: in a batch script, ended by scancel."""
    job = place.cluster.submit(
        f"srun --container-image='{IMAGE}' sleep 600",
        "--nodes=2",
        "--mem=50",
        "--partition=compute",
        "--output=/shared/batch.out",
    )
    for node in WORKERS:
        eventually("it runs", lambda node=node: place.listed(node) == [f"pyxis_{job}.0"], LONG_S)
    place.cluster.run("scancel", str(job))
    for node in WORKERS:
        eventually("it is gone", lambda node=node: not place.listed(node), LONG_S)


def test_mounts_are_there_as_they_are_asked_for(place: Place) -> None:
    """S049."""
    place.shared("mkdir -p datasets output; echo data >datasets/one")
    mounts = "--container-mounts=/shared/datasets:/data:ro,/shared/output:/output:rw"
    script = "cat /data/one; touch /data/two || echo refused; id -u >/output/uid; ls /shared || :"
    said = place.srun("-wcompute-0", f"--container-image={IMAGE}", mounts, "sh", "-c", script)
    assert said == ["data", "refused"]
    assert place.shared("cat output/uid").strip() == "401"
    home = ("--container-mount-home", "--container-workdir=/tmp")
    place.srun("-wcompute-0", f"--container-image={IMAGE}", *home, "ls", "/")
    assert "env ENROOT_MOUNT_HOME=y" in place.cluster.on(WORKERS[0], "cat /run/enroot/calls")


def test_a_saved_container_is_an_image_that_needs_no_registry(place: Place) -> None:
    """S047, S051, S052: compressed as enroot's settings say, which change for the next job."""
    save = "--container-save=/shared/saved.sqsh"
    place.srun("-wcompute-0", f"--container-image={IMAGE}", save, "sh", "-c", "echo kept >/kept")
    eventually("it is saved", lambda: compression(place, "saved.sqsh") == "lz4", LONG_S)
    asked = registry.log(place.cluster)
    again = ("-N2", "--container-image=/shared/saved.sqsh", "cat", "/kept")
    assert place.srun(*again) == ["kept", "kept"]
    assert registry.log(place.cluster) == asked
    place.cluster.apply(enroot("gzip"))
    # The kubelet looks after mounted files once a minute, and when the pod changes.
    place.cluster.kubectl("annotate", "pods", "--all", "test.penstock.dev/look=1")

    def changed() -> bool:
        place.srun("-wcompute-0", "--container-image=/shared/saved.sqsh", save, "true")
        return compression(place, "saved.sqsh") == "gzip"

    eventually("the next job has the changed settings", changed, LONG_S)


def compression(place: Place, name: str) -> str:
    return place.shared(f'unsquashfs -s {name} | sed -n "s/^Compression //p"').strip()


def test_a_named_container_is_kept_for_the_next_step(place: Place) -> None:
    """Feature row 54."""
    one = ("-wcompute-0", "--container-name=box")
    place.srun(*one, f"--container-image={IMAGE}", "sh", "-c", "echo here >/note")
    assert place.listed("compute-0") == ["pyxis_box"]
    assert place.srun(*one, "cat", "/note") == ["here"]
    place.cluster.on("compute-0", f"{' '.join(USER)} enroot remove -f pyxis_box")


def test_the_cache_of_a_worker_is_there_again_after_its_pod(place: Place) -> None:
    """S050, S051: its claim; the layers are not fetched again."""
    claims = place.cluster.kubectl("get", "pvc", "-o", "name").split()
    assert claims == [f"persistentvolumeclaim/enroot-cache-{node}" for node in WORKERS]
    uid = place.cluster.uids()["compute-1"]
    place.cluster.kubectl("delete", "pod", "compute-1", "--wait=false")

    def another(pods: dict[str, Json]) -> bool:
        return "compute-1" in pods and pods["compute-1"]["metadata"]["uid"] != uid

    place.cluster.until("pods", another, "another pod of that name is made", LONG_S)
    place.cluster.until_idle(*WORKERS, "bare-0", timeout=LONG_S)
    asked = len(registry.log(place.cluster))
    place.srun("-wcompute-1", f"--container-image={IMAGE}", "true")
    told = {line for line in registry.log(place.cluster)[asked:] if line.endswith(" 200")}
    assert told == {"GET /v2/team/app/manifests/v1 200"}
    claim = place.cluster.pods()["compute-1"]["spec"]["volumes"]
    names = [
        one["persistentVolumeClaim"]["claimName"] for one in claim if "persistentVolumeClaim" in one
    ]
    assert names == ["enroot-cache-compute-1"]


def test_enroot_works_in_a_login_pod(place: Place) -> None:
    """S044: an image fetched beforehand, on a file system that the workers see."""
    uri = f"docker://{IMAGE}"
    place.login(f"{' '.join(USER)} enroot import --output /shared/before.sqsh '{uri}'")
    asked = registry.log(place.cluster)
    warm = "--container-image=/shared/before.sqsh"
    assert place.srun("-N2", warm, "cat", "/etc/os-release") == [INSIDE] * 2
    assert registry.log(place.cluster) == asked


def test_a_step_has_the_gpus_that_it_asked_for(place: Place) -> None:
    """S048, feature row 55: by device files that stand for them; the third waits for resources."""
    script = "echo $CUDA_VISIBLE_DEVICES; ls /dev/nvidia[0-9]"
    asked = ("-wcompute-0", f"--container-image={IMAGE}", "sh", "-c", script)
    assert place.srun("--gres=gpu:2", *asked) == ["0,1", "/dev/nvidia0", "/dev/nvidia1"]
    assert place.srun("--gres=gpu:a100:1", *asked)[0] in ("0", "1")
    options = ("--mem=50", "--partition=compute", "--output=/dev/null", "--exclude=compute-1")
    first = place.cluster.submit("sleep 600", "--gres=gpu:2", *options)
    place.cluster.until_job(first, "RUNNING")
    third = place.cluster.submit("true", "--gres=gpu:1", *options)
    eventually("it waits", lambda: place.cluster.job(third)["Reason"] == "Resources", LONG_S)
    place.cluster.run("scancel", str(first))
    place.cluster.until_job(third, "COMPLETED")


def test_a_step_without_the_rights_names_those_it_lacks(place: Place) -> None:
    """S045: in the job's own words, and in those of the NodeSet; other jobs go on."""
    said = place.fails(f"--container-image={IMAGE}", "true", partition="bare")
    assert "failed to create user namespace: Operation not permitted" in said
    assert place.srun("echo", "works", partition="bare") == ["works"]
    found = place.cluster.until(
        "nodesets",
        lambda all_: condition(all_["bare"], "ContainersLimited") or None,
        "the NodeSet says so",
    )
    assert found["status"] == "True"
    assert "SYS_ADMIN" in found["message"]
    assert (
        condition(place.cluster.get("nodesets", "compute"), "ContainersLimited")["status"]
        == "False"
    )
    assert condition(place.cluster.get("nodesets", "bare"), "Ready")["status"] == "True"


def test_slurms_own_container_runs_a_bundle_by_runc(place: Place) -> None:
    """Feature row 54: oci.conf among the Controller's files; rootless."""
    place.shared(
        "mkdir -p bundle/rootfs/bin bundle/rootfs/etc bundle/rootfs/proc bundle/rootfs/dev "
        "bundle/rootfs/sys bundle/rootfs/tmp; cd bundle; cp /usr/bin/busybox rootfs/bin; "
        "for name in sh cat id sleep; do ln -sf busybox rootfs/bin/$name; done; "
        "echo of-the-bundle >rootfs/etc/os-release; rm -f config.json; runc spec --rootless"
    )
    script = "cat /etc/os-release; id -u; echo $$"
    asked = ("--container=/shared/bundle", "/bin/sh", "-c", script)
    assert place.srun("-wcompute-0", *asked) == ["of-the-bundle", "0", "1"]
    job = place.cluster.submit(
        "exec sleep 600",
        "--mem=50",
        "--container=/shared/bundle",
        "--partition=compute",
        "--output=/shared/oci.out",
    )
    node = place.cluster.until_job(job, "RUNNING")["NodeList"]
    listed = f"{' '.join(USER)} runc --root=/tmp/runc-401 list -q"
    eventually("runc has it", lambda: str(job) in place.cluster.on(node, listed), LONG_S)
    place.cluster.run("scancel", str(job))
    eventually("runc has it no more", lambda: not place.cluster.on(node, listed).strip(), LONG_S)


def test_a_changed_plugstack_conf_is_there_for_the_next_step(place: Place) -> None:
    """S042, feature row 4: on workers and logins, and no pod restarts."""
    before = place.cluster.uids("")
    began = time.monotonic()
    place.cluster.apply(files("required spank_pyxis.so runtime_path=/run/pyxis/other\n"))

    def taken() -> bool:
        place.srun("-N2", f"--container-image={IMAGE}", "true")
        last = [[one for one in place.calls(node) if " import " in one][-1] for node in WORKERS]
        return all("/run/pyxis/other/" in one for one in last)

    eventually("workers have it", taken, LONG_S)
    print(f"after {time.monotonic() - began:.1f} s")
    place.cluster.apply(files("# none\n"))
    option = "--container-image"
    eventually("the login has it", lambda: option not in place.login("srun --help"), LONG_S)
    assert place.cluster.uids("") == before
