"""Each shipped check passes, fails with its reason, and is skipped where its hardware is absent.

Commands are stand-ins that print a text; nothing but them stands between a check and slurmctld's
record of the node.
"""

from __future__ import annotations

import csv
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from support.check_worker import CHECKS, Worker

H100_OUTPUT = Path(__file__).parents[2] / "fixtures/gpu/h100"
H100 = "NVIDIA H100 80GB HBM3\n"
UUIDS = [f"GPU-{index:08x}-0000-0000-0000-000000000000" for index in range(8)]
BUSES = [f"00000000:{index + 0x19:02X}:00.0" for index in range(8)]
SMI = """#!/bin/bash
# Stands in for nvidia-smi: names, what the health check asks for, and processes.
cd "$CHECKS_ROOT"
case "$*" in
*--query-gpu=name*) cat names ;;
*--query-gpu=uuid*) cat gpus; exit "$(cat status)" ;;
*--query-remapped-rows*) cat rows ;;
*--query-compute-apps*) echo "$*" >asked; cat processes; exit "$(cat status)" ;;
esac
"""
DF = "Filesystem 1024-blocks Used Available Capacity Mounted on\noverlay 1000 {0} 1 {0}% /\n"
MDSTAT = """Personalities : [raid0] [raid1]
md0 : active raid1 nvme1n1[1] nvme0n1[0]
      1953382400 blocks super 1.2 [2/{0}] [{1}]

unused devices: <none>
"""
MIB = 1 << 20


@pytest.fixture
def gpus(worker: Worker) -> Worker:
    """A worker with eight healthy GPUs."""
    (worker.bin / "nvidia-smi").write_text(SMI)
    (worker.bin / "nvidia-smi").chmod(0o755)
    worker.command("dmesg", "NVRM: loading NVIDIA UNIX x86_64 Kernel Module\n")
    listed = "".join(f"{uuid}, {bus}, 0\n" for uuid, bus in zip(UUIDS, BUSES, strict=True))
    rows = "".join(f"{uuid}, No\n" for uuid in UUIDS)
    texts = {"names": H100 * 8, "gpus": listed, "rows": rows, "processes": "", "status": "0"}
    for name, text in texts.items():
        worker.file(name, text)
    for bus in BUSES:
        worker.file(f"proc/driver/nvidia/gpus/{bus[4:].lower()}/information", "")
    worker.file("proc/1/environ", f"A=b\0NVIDIA_VISIBLE_DEVICES={','.join(UUIDS)}\0")
    return worker


def drained(worker: Worker) -> str:
    """The reason of the node's drain; empty when it is not drained."""
    return worker.reason if worker.state == "IDLE+DRAIN" else ""


def break_first(worker: Worker, file: str, old: str, new: str) -> None:
    text = (worker.root / file).read_text()
    assert old in text
    worker.file(file, text.replace(old, new, 1))


def test_gpu_health_check_passes(gpus: Worker) -> None:
    gpus.shipped("gpu_health_check.py")
    assert gpus.run("prolog", SLURM_JOB_GPUS="0").returncode == 0
    assert "gpu_health_check passed" in gpus.output("prolog")
    assert gpus.calls == []


def test_gpu_health_check_names_a_missing_gpu(gpus: Worker) -> None:
    """S112: by the count that the driver reports."""
    gpus.shipped("gpu_health_check.py")
    gpus.run("hc_program")
    rows = (gpus.root / "gpus").read_text().splitlines(keepends=True)
    gpus.file("gpus", "".join(rows[:7]))
    gpus.file("names", H100 * 7)
    gpus.run("hc_program")
    words = f"7 of 8 GPUs answer ({UUIDS[7]} is missing)"
    assert drained(gpus) == f"[node_problem] gpu_health_check: {words} [hc_program]"


@pytest.mark.parametrize(
    ("file", "old", "new", "words"),
    [
        ("gpus", ", 0\n", ", 3\n", f"GPU {UUIDS[0]} has 3 uncorrected ECC errors"),
        ("rows", ", No", ", Yes", f"GPU {UUIDS[0]} could not remap a row of memory"),
        ("gpus", ", 0\n", ", [N/A]\n", ""),
        ("rows", ", No", ", [N/A]", ""),
    ],
)
def test_gpu_health_check_reads_the_counters(
    gpus: Worker, file: str, old: str, new: str, words: str
) -> None:
    gpus.shipped("gpu_health_check.py")
    break_first(gpus, file, old, new)
    gpus.run("hc_program")
    wanted = f"[node_problem] gpu_health_check: {words} [hc_program]" if words else ""
    assert drained(gpus) == wanted


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("NVRM: Xid (PCI:0000:1a:00): 79, pid=1, GPU has fallen off the bus.", "logged Xid 79"),
        ("NVRM: Xid (PCI:0000:1a:00): 13, pid=1, Graphics SM Warp Exception", ""),
        ("NVRM: Xid (PCI:0000:ff:00): 79, pid=1, GPU has fallen off the bus.", ""),
    ],
)
def test_gpu_health_check_reads_the_kernels_log(gpus: Worker, line: str, words: str) -> None:
    """S112: an error of a user's program, or on a GPU of another worker, is none of this node."""
    gpus.shipped("gpu_health_check.py")
    gpus.command("dmesg", f"[   12.5] {line}\n")
    gpus.run("hc_program")
    assert words in drained(gpus)
    assert bool(drained(gpus)) == bool(words)


def test_gpu_health_check_reports_the_words_of_a_failing_nvidia_smi(gpus: Worker) -> None:
    gpus.shipped("gpu_health_check.py")
    gpus.run("hc_program")
    gpus.file("gpus", "Unable to determine the device handle for GPU0: Unknown Error\n")
    gpus.file("status", "15")
    gpus.run("hc_program")
    assert "0 of 8 GPUs answer" in drained(gpus)
    assert "Unable to determine the device handle" in drained(gpus)


@pytest.mark.parametrize("status", [2, 4, 9, 12, 13])
def test_gpu_health_check_is_skipped_when_the_command_is_at_fault(
    gpus: Worker, status: int
) -> None:
    """An older driver may lack a field: that drains no node."""
    gpus.shipped("gpu_health_check.py")
    gpus.file("gpus", 'Field "uuid" is not a valid field to query.\n')
    gpus.file("status", str(status))
    gpus.run("hc_program")
    assert "is not a valid field to query" in gpus.output("hc_program")
    assert drained(gpus) == ""


def real(name: str, *columns: str) -> str:
    """Columns of a real H100's CSV output, in the form that the check asks for."""
    head, *rows = csv.reader((H100_OUTPUT / name).read_text().splitlines(), skipinitialspace=True)
    return "".join(", ".join(row[head.index(one)] for one in columns) + "\n" for row in rows)


def test_gpu_health_check_reads_the_output_of_a_real_h100(gpus: Worker) -> None:
    """Real output passes; with one value changed it fails."""
    uuid, bus = real("gpus.csv", "uuid", "pci.bus_id").strip().split(", ")
    errors = real("errors.csv", "ecc.errors.uncorrected.volatile.total").strip()
    gpus.file("gpus", f"{uuid}, {bus}, {errors}\n")
    gpus.file("rows", real("remapped-rows.csv", "gpu_uuid", "remapped_rows.failure"))
    gpus.file("proc/1/environ", f"NVIDIA_VISIBLE_DEVICES={uuid}\0")
    shutil.rmtree(gpus.root / "proc/driver/nvidia/gpus")
    gpus.file(f"proc/driver/nvidia/gpus/{bus[4:]}/information", "")
    kernel = (H100_OUTPUT / "kernel-log.txt").read_text()
    gpus.command("dmesg", kernel)
    done = script(gpus, "gpu_health_check.py")
    assert (done.returncode, done.stderr) == (0, "")
    gpus.command(
        "dmesg", f"{kernel}[9.1] NVRM: Xid (PCI:{bus[4:11]}): 79, GPU has fallen off the bus.\n"
    )
    assert "logged Xid 79" in script(gpus, "gpu_health_check.py").stderr
    gpus.command("dmesg", kernel)
    break_first(gpus, "rows", "No", "Yes")
    assert f"GPU {uuid} could not remap" in script(gpus, "gpu_health_check.py").stderr
    gpus.file("gpus", "")
    assert "0 of 1 GPUs answer" in script(gpus, "gpu_health_check.py").stderr


def test_alloc_gpus_busy_reads_the_output_of_a_real_h100(gpus: Worker) -> None:
    gpus.file("processes", real("processes-busy.csv", "pid", "process_name", "gpu_uuid"))
    done = script(gpus, "alloc_gpus_busy.drain.sh", SLURM_JOB_GPUS="0")
    assert done.returncode == 1
    assert done.stderr.startswith("processes on GPUs: python3 (1228) on GPU-00000000-")


def test_gpu_health_check_is_skipped_without_gpus(worker: Worker) -> None:
    worker.shipped("gpu_health_check.py")
    worker.run("hc_program")
    assert "gpu_health_check skipped" in worker.output("hc_program")
    assert "the node is CPU, not 8xH100" in worker.output("hc_program")
    done = script(worker, "gpu_health_check.py")
    assert (done.returncode, done.stderr) == (0, "skipped: nvidia-smi is absent\n")


def test_alloc_gpus_busy_passes_on_free_gpus(gpus: Worker) -> None:
    gpus.shipped("alloc_gpus_busy.drain.sh")
    assert gpus.run("prolog", SLURM_JOB_GPUS="2,3").returncode == 0
    assert "-i 2,3 " in (gpus.root / "asked").read_text()
    assert drained(gpus) == ""


def test_alloc_gpus_busy_drains_and_undrains(gpus: Worker) -> None:
    gpus.shipped("alloc_gpus_busy.drain.sh", "alloc_gpus_busy.undrain.sh")
    gpus.file("processes", f"4711, /usr/bin/python3 -c 1, 2, {UUIDS[0]}\n")
    assert gpus.run("prolog", SLURM_JOB_GPUS="0").returncode == 1
    words = f"processes on GPUs: /usr/bin/python3 -c 1, 2 (4711) on {UUIDS[0]}"
    assert drained(gpus) == f"[user_problem] alloc_gpus_busy: {words} [prolog]"
    gpus.run("hc_program")
    assert drained(gpus)
    gpus.file("processes", "")
    gpus.run("hc_program")
    assert drained(gpus) == ""


@pytest.mark.parametrize("name", ["alloc_gpus_busy.drain.sh", "alloc_gpus_busy.undrain.sh"])
def test_alloc_gpus_busy_is_skipped_without_the_command_or_its_answer(
    worker: Worker, name: str
) -> None:
    assert script(worker, name).stderr == "skipped: nvidia-smi is absent\n"
    worker.command("nvidia-smi", "No devices were found\n", status=6)
    assert script(worker, name).stderr == "skipped: nvidia-smi: No devices were found\n"


def test_an_unknown_result_is_no_repair(gpus: Worker) -> None:
    gpus.drain("[user_problem] alloc_gpus_busy: pid 1 [prolog]")
    gpus.shipped("alloc_gpus_busy.undrain.sh")
    gpus.file("status", "6")
    gpus.run("hc_program")
    assert "alloc_gpus_busy skipped" in gpus.output("hc_program")
    assert drained(gpus)


def test_boot_disk_full_drains_and_undrains(worker: Worker) -> None:
    worker.shipped("boot_disk_full.sh")
    worker.command("df", DF.format(80))
    assert worker.run("prolog").returncode == 0
    worker.command("df", DF.format(81))
    assert worker.run("prolog").returncode == 1
    words = "81 % of / is used, at most 80 % may be"
    assert drained(worker) == f"[user_problem] boot_disk_full: {words} [prolog]"
    worker.command("df", DF.format(40))
    worker.run("hc_program")
    assert drained(worker) == ""


def test_boot_disk_full_is_skipped_without_an_answer(worker: Worker) -> None:
    worker.command("df", "df: /: Permission denied\n", status=1)
    worker.shipped("boot_disk_full.sh")
    assert worker.run("prolog").returncode == 0
    assert "boot_disk_full skipped" in worker.output("prolog")


@pytest.mark.parametrize("version", [1, 2])
def test_idle_mem_used_drains_and_undrains(worker: Worker, version: int) -> None:
    stat = ("memory.stat", "anon") if version == 2 else ("memory/memory.stat", "total_rss")
    path, key = f"sys/fs/cgroup/{stat[0]}", stat[1]
    worker.shipped("idle_mem_used.drain.py", "idle_mem_used.undrain.py")
    worker.file("run/soperator/node_metadata.env", f"SOPERATOR_NODE_REAL_MEMORY_BYTES={8192 * MIB}")
    worker.file(path, f"{key} {900 * MIB}\nfile {7000 * MIB}\n")
    worker.run("hc_program")
    assert drained(worker) == ""
    worker.file(path, f"{key} {2000 * MIB}\nfile 0\n")
    worker.run("hc_program")
    words = "2000 MiB of 8192 MiB are in use without a job, at most 1024 MiB may be"
    assert drained(worker) == f"[user_problem] alloc_mem_used: {words} [hc_program]"
    worker.run("hc_program")
    assert drained(worker)
    worker.file(path, f"{key} {100 * MIB}\n")
    worker.run("hc_program")
    assert drained(worker) == ""


def test_idle_mem_used_is_skipped_while_jobs_run_or_without_a_control_group(
    worker: Worker,
) -> None:
    asked = {"CHECKS_NODE_REAL_MEM_BYTES": str(1 << 33)}
    for name in ("idle_mem_used.drain.py", "idle_mem_used.undrain.py"):
        assert script(worker, name).stderr == "skipped: the node's memory is unknown\n"
        found = script(worker, name, **asked).stderr
        assert found == "skipped: the container has no control group of memory\n"
    worker.file("proc/77/comm", "slurmstepd\n")
    found = script(worker, "idle_mem_used.drain.py", **asked).stderr
    assert found == "skipped: jobs run on the node\n"


def test_nvme_raid_health(worker: Worker) -> None:
    """It has no repair, and is off unless the values name it."""
    worker.command("nvidia-smi", "NVIDIA B300\n" * 8)
    worker.shipped("nvme_raid_health.sh")
    worker.file("proc/mdstat", MDSTAT.format(2, "UU"))
    worker.run("hc_program")
    assert "nvme_raid_health passed" in worker.output("hc_program")
    worker.file("proc/mdstat", MDSTAT.format(1, "U_"))
    worker.run("hc_program")
    assert drained(worker) == "[hardware_problem] nvme_raid_health: md0 [U_] [hc_program]"
    worker.file("proc/mdstat", "Personalities :\nunused devices: <none>\n")
    assert "skipped: the node has no array of disks" in script(worker, "nvme_raid_health.sh").stderr
    (worker.root / "proc/mdstat").unlink()
    assert "mdstat is absent" in script(worker, "nvme_raid_health.sh").stderr


def test_gpus_of_a_job_are_mapped_and_unmapped(gpus: Worker) -> None:
    gpus.shipped("map_job_dcgm.sh", "unmap_job_dcgm.sh")
    job = {"SLURM_JOB_GPUS": "0,3", "SLURM_JOB_ID": "42"}
    gpus.run("prolog", **job)
    folder = gpus.root / "var/run/nebius/slurm"
    assert {path.name: path.read_text() for path in folder.iterdir()} == {"0": "42\n", "3": "42\n"}
    (folder / "3").write_text("43\n")
    gpus.run("epilog", **job)
    assert [path.name for path in folder.iterdir()] == ["3"]


@pytest.mark.parametrize("name", ["map_job_dcgm.sh", "unmap_job_dcgm.sh"])
def test_without_gpus_nothing_is_mapped(worker: Worker, name: str) -> None:
    assert script(worker, name, SLURM_JOB_ID="1").stderr == "skipped: the job has no GPU\n"


def test_a_jobs_folder_in_memory_is_made_deleted_and_found_when_left(worker: Worker) -> None:
    memory = worker.root / "mnt/jail/mnt/memory"
    memory.mkdir(parents=True)
    worker.command("mountpoint")
    worker.file("mnt/jail/mnt/memory/job_7/old", "of a namesake")
    assert script(worker, "job_tmpfs_recreate.sh", SLURM_JOB_ID="7").returncode == 0
    assert list((memory / "job_7").iterdir()) == []
    assert (memory / "job_7").stat().st_mode & 0o7777 == 0o777
    assert script(worker, "job_tmpfs_delete.sh", SLURM_JOB_ID="7").returncode == 0
    assert list(memory.iterdir()) == []
    for job, age in {"8": 3600, "9": 3600, "10": 0}.items():
        (memory / f"job_{job}").mkdir()
        at = (memory / f"job_{job}").stat().st_mtime - age
        os.utime(memory / f"job_{job}", (at, at))
    worker.file("proc/5/cmdline", "slurmstepd: [9.extern]\0")
    script(worker, "job_tmpfs_delete_leftover.sh")
    assert {path.name for path in memory.iterdir()} == {"job_9", "job_10"}


def test_without_a_jail_the_folder_is_in_the_containers_root(worker: Worker) -> None:
    (worker.root / "mnt/jail/usr").rmdir()
    (worker.root / "mnt/memory").mkdir()
    worker.command("mountpoint")
    worker.shipped("job_tmpfs_recreate.sh")
    assert worker.run("prolog", SLURM_JOB_ID="7").returncode == 0
    assert (worker.root / "mnt/memory/job_7").is_dir()
    outputs = worker.root / "opt/soperator-outputs/local/slurm_scripts"
    assert "passed" in (outputs / "worker-0.check_runner.prolog.out").read_text()


def test_a_link_in_place_of_a_jobs_folder_is_not_followed(worker: Worker) -> None:
    worker.command("mountpoint")
    victim = worker.file("victim/file", "kept")
    memory = worker.root / "mnt/jail/mnt/memory"
    memory.mkdir(parents=True)
    (memory / "job_7").symlink_to(victim.parent)
    script(worker, "job_tmpfs_recreate.sh", SLURM_JOB_ID="7")
    assert victim.read_text() == "kept"
    assert not (memory / "job_7").is_symlink()


@pytest.mark.parametrize(
    "name", ["job_tmpfs_recreate.sh", "job_tmpfs_delete.sh", "job_tmpfs_delete_leftover.sh"]
)
def test_without_a_volume_in_memory_there_are_no_folders(worker: Worker, name: str) -> None:
    found = script(worker, name, SLURM_JOB_ID="7")
    assert found.returncode == 0
    assert found.stderr.endswith("mnt/memory is no mount\n")


def test_shared_memory_and_scratch_are_emptied(worker: Worker) -> None:
    worker.command("mountpoint")
    for path in ("dev/shm/a", "mnt/jail/scratch/b/c"):
        worker.file(path, "left")
    script(worker, "drop_posix_shmem.sh")
    script(worker, "cleanup_scratch_data.sh")
    assert list((worker.root / "dev/shm").iterdir()) == []
    assert list((worker.root / "mnt/jail/scratch").iterdir()) == []


def test_shared_memory_scratch_and_cache_are_left_where_they_are_absent(worker: Worker) -> None:
    assert "dev/shm is absent" in script(worker, "drop_posix_shmem.sh").stderr
    assert "scratch is no mount" in script(worker, "cleanup_scratch_data.sh").stderr
    assert "drop_caches is read-only" in script(worker, "drop_page_cache.sh").stderr


def test_the_page_cache_is_dropped(worker: Worker) -> None:
    file = worker.file("proc/sys/vm/drop_caches", "")
    script(worker, "drop_page_cache.sh")
    assert file.read_text() == "3\n"


@pytest.mark.parametrize("path", sorted((CHECKS / "entries").glob("*.json")), ids=lambda p: p.stem)
def test_each_entry_has_its_script(path: Path) -> None:
    found = CHECKS / "scripts" / path.stem
    assert os.access(found, os.X_OK)
    assert f'"./{found.name}"' in path.read_text()


def script(worker: Worker, name: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run one script alone; its details are in `stderr`."""
    return subprocess.run(
        ["bash", "-c", f"exec 3>&2 2>/dev/null; ./{name}"],
        cwd=worker.root / "opt/slurm_scripts",
        env={
            "PATH": f"{worker.bin}:{os.environ['PATH']}",
            "CHECKS_ROOT": str(worker.root),
            **environ,
        },
        capture_output=True,
        text=True,
        check=False,
    )
