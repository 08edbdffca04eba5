"""Why containers have what they have beyond the runtime's default, and the test that takes it away.

A privilege that is absent here is a failure, so no container gets more unnoticed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

SLINKY: Final = "slinky.slurm.net"
NEBIUS: Final = "slurm.nebius.ai"
ROOT_USER: Final = "user 0"


@dataclass(frozen=True)
class Need:
    """The reason for one privilege.

    `test` is FILE::FUNCTION below tests: without this privilege, something fails there. Where no
    test can show that, `untested` is the cause.
    """

    reason: str
    test: str = ""
    untested: str = ""


_AS_ORIGINAL: Final = (
    "none: the original's pods have it, and a change of the template would restart all pods"
)
_CAPABILITIES: Final = "e2e/test_capabilities.py::"
_STEP: Final = (
    _CAPABILITIES + "test_no_step_enters_the_jail_without_sys_admin_or_with_a_seccomp_profile"
)
_FOLDERS: Final = (
    _CAPABILITIES + "test_without_folders_of_the_node_a_job_has_no_log_and_leaves_no_output_there"
)
_NEEDS_POD: Final = "open: it needs a pod of a Kubernetes node without it"
_BACKUP: Final = "unit/images/test_backup.py::test_no_capability_can_be_taken_away"
_UPGRADE: Final = "unit/images/test_jail_upgrade.py::test_no_capability_can_be_taken_away"
_FILES: Final = "owners, modes, device files and file capabilities of "
_WRITING: Final = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "MKNOD", "SETFCAP")
_ROOT_FOR_ADDED: Final = "Kubernetes gives added capabilities to root alone"
_READ_BY_PROC: Final = "root, whose files the container `jail-upgrade` may read by `/proc`"
_WITHOUT_IT: Final = "nothing fails: e2e/test_jail.py runs the daemon without it"
_NO_ADDED_ROOT: Final = "the image of Penstock starts as root by itself"
_POPULATE: Final[Mapping[str, Need]] = {
    "SETFCAP": Need(
        "file capabilities of the jail's files, with CRI-O",
        "unit/images/test_populate_jail.py::"
        "test_a_jail_filled_without_setfcap_lacks_file_capabilities",
    ),
    "SYS_ADMIN": Need(
        "none in Penstock's image: the original's container has it",
        untested="nothing fails: the test of SETFCAP fills a jail without it",
    ),
}


def _each(names: tuple[str, ...], need: Need) -> dict[str, Need]:
    return dict.fromkeys(names, need)


NEEDS: Final[Mapping[tuple[str, str], Mapping[str, Need]]] = {
    (SLINKY, "slurmd"): {
        "privileged": Need(
            "control groups that it can write, all devices "
            "([can be dropped](../platform/rights.md))",
            untested=_NEEDS_POD,
        ),
        "SYS_ADMIN": Need(
            "mounts of each job, as `namespace/tmpfs` makes them",
            _CAPABILITIES + "test_without_sys_admin_no_job_has_a_folder_for_temporary_files",
        ),
        "SYS_NICE": Need(
            "`slurmd -n` with a negative number",
            _CAPABILITIES + "test_without_sys_nice_slurmd_cannot_raise_its_priority",
        ),
        **_each(
            ("BPF", "NET_ADMIN"),
            Need(
                "devices of jobs with cgroup v2, where `SYS_ADMIN` is taken away",
                _CAPABILITIES
                + "test_without_sys_admin_a_program_for_devices_needs_bpf_and_net_admin",
            ),
        ),
    },
    (NEBIUS, "slurmd"): {
        "SYS_ADMIN": Need(
            "mounts of the jail, namespaces of each step",
            _STEP,
        ),
        "seccomp Unconfined": Need(
            "`pivot_root` of each step",
            _STEP,
        ),
        "procMount Unmasked": Need(
            "without a jail: containers of jobs in a pod's user namespace have their own `/proc`",
            "unit/images/test_proc.py::"
            "test_a_container_in_a_pod_with_a_masked_proc_cannot_have_its_own",
        ),
        "host /boot": Need(
            "none: the original's pods have it",
            untested="nothing of Penstock reads it",
        ),
        "host /run/nvidia": Need(
            "the driver of NVIDIA's GPU operator",
            untested="it needs a Kubernetes node with that driver",
        ),
        "host /var/log/journal": Need(
            "jobs read the log of their Kubernetes node in `/var/hostlog/journal`",
            _FOLDERS,
        ),
        "host /var/log/soperator-outputs": Need(
            "the Kubernetes node has the output of checks",
            _FOLDERS,
        ),
    },
    (NEBIUS, "sshd"): {
        "SYS_ADMIN": Need(
            "mounts of the jail, namespaces of sshd",
            "unit/images/test_jail_mounts.py::test_a_jail_is_not_completed_without_sys_admin",
        ),
        "seccomp Unconfined": Need(
            "system calls of users' programs, such as `io_uring_setup`",
            _CAPABILITIES + "test_with_the_runtimes_seccomp_profile_sessions_lack_system_calls",
        ),
    },
    (NEBIUS, "slurmctld"): {"SYS_ADMIN": Need(_AS_ORIGINAL, untested=_WITHOUT_IT)},
    (NEBIUS, "munge"): {"SYS_ADMIN": Need(_AS_ORIGINAL, untested=_WITHOUT_IT)},
    (NEBIUS, "populate-jail"): _POPULATE,
    (NEBIUS, "backup"): {
        "DAC_OVERRIDE": Need("root reads the files of all users; nothing else", _BACKUP),
        ROOT_USER: Need("", untested=_ROOT_FOR_ADDED),
    },
    (NEBIUS, "restore"): {
        **_each(_WRITING, Need(f"{_FILES}restored files", _BACKUP)),
        ROOT_USER: Need("", untested=_ROOT_FOR_ADDED),
    },
    (NEBIUS, "jail-upgrade"): {
        **_each(_WRITING, Need(f"{_FILES}the jail's files", _UPGRADE)),
        ROOT_USER: Need("", untested=_ROOT_FOR_ADDED),
    },
    (NEBIUS, "old"): {ROOT_USER: Need(_READ_BY_PROC, untested=_NO_ADDED_ROOT)},
    (NEBIUS, "new"): {ROOT_USER: Need(_READ_BY_PROC, untested=_NO_ADDED_ROOT)},
    (NEBIUS, "check"): {
        "SYS_ADMIN": Need(
            "none in Penstock's image: those of the original mount folders in the jail",
            untested="nothing of Penstock's program fails: it mounts nothing",
        ),
    },
    (NEBIUS, "init-dir"): {
        ROOT_USER: Need(
            "starts as root, to give the folder to the writer's user",
            "unit/images/test_configuration_folder.py::"
            "test_root_alone_gives_the_folder_to_the_writer",
        )
    },
    (NEBIUS, "accounting"): {
        ROOT_USER: Need("starts as root, to give files to the user slurm", untested=_NO_ADDED_ROOT)
    },
}
"""By API and container, then by privilege as the table names it, without a star."""
