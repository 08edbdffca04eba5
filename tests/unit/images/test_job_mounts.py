"""The list of mounts for each job, which the slurmd image writes for chroot.so."""

from pathlib import Path
from types import ModuleType

LINE = "/mnt/jail.jobs/data\tjobs/${SLURM_JOB_ID}\t/job\trw\n"


def test_the_list_of_the_pod_becomes_a_file_that_only_root_may_write(
    jail_slurmd: ModuleType, tmp_path: Path
) -> None:
    """S105: also over that of the container before."""
    path = tmp_path / "run/penstock/job-mounts"
    jail_slurmd.write_job_mounts(path, "old" * 9)
    jail_slurmd.write_job_mounts(path, LINE)
    assert (path.read_text(), path.stat().st_mode & 0o777) == (LINE, 0o644)


def test_without_a_mount_no_list_of_before_stays(jail_slurmd: ModuleType, tmp_path: Path) -> None:
    """S105."""
    path = tmp_path / "job-mounts"
    jail_slurmd.write_job_mounts(path, LINE)
    jail_slurmd.write_job_mounts(path, "")
    assert not path.exists()
    jail_slurmd.write_job_mounts(path, "")


def test_folders_of_jobs_are_made_before_a_job_can_and_are_empty(
    jail_slurmd: ModuleType, tmp_path: Path
) -> None:
    """S171: whatever a former container, or a user, left in their places."""
    left, link, new = (tmp_path / name for name in ("left", "link", "new"))
    (left / "tmp/7").mkdir(parents=True)
    (left / "tmp/7/file").touch()
    (tmp_path / "other").mkdir()
    (tmp_path / "other/file").touch()
    link.symlink_to(tmp_path / "other")
    jail_slurmd.reserve_job_folders((left, link, new))
    for folder in (left, link, new):
        assert not folder.is_symlink()
        assert folder.stat().st_mode & 0o777 == 0o700
        assert not list(folder.iterdir())
    assert (tmp_path / "other/file").exists()
