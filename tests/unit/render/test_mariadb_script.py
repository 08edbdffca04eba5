"""The shell that runs MariaDB for slurmdbd, beside stand-ins for the server and its installer."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from penstock.render.parts.script import script

INSTALL = """#!/bin/sh
for one; do case $one in --datadir=*) folder=${one#*=} ;; esac; done
echo "install $folder" >>"$HOME/calls"
[ ! -e "$HOME/broken" ] || { mkdir -p "$folder/half"; echo "no space left" >&2; exit 1; }
mkdir -p "$folder/mysql"
"""
SERVER = """#!/bin/sh
printf '%s\\n' "$@" >"$HOME/server"
"""


class Database:
    """A data folder, a Secret and the script."""

    def __init__(self, folder: Path) -> None:
        self.home = folder
        self.data, self.run_folder = folder / "data", folder / "run"
        self.secret = folder / "password"
        self.data.mkdir()
        programs = folder / "bin"
        programs.mkdir()
        for name, text in (("mariadb-install-db", INSTALL), ("mariadbd", SERVER)):
            (programs / name).write_text(text)
            (programs / name).chmod(0o755)
        self.password("geheim")

    def password(self, text: str) -> None:
        self.secret.write_text(text)

    def start(self) -> subprocess.CompletedProcess[str]:
        environment = {
            "HOME": str(self.home),
            "PATH": f"{self.home / 'bin'}:/usr/bin:/bin",
            "DATABASE_DATA": str(self.data),
            "DATABASE_RUN": str(self.run_folder),
            "DATABASE_SECRET": str(self.secret),
            "DATABASE_NAME": "slurm_acct_db",
            "DATABASE_USER": "slurm",
            "DATABASE_PORT": "3306",
            "DATABASE_POOL": "268435456",
            "DATABASE_LOG": "67108864",
        }
        command = ["sh", "-c", script("mariadb"), "mariadb"]
        return subprocess.run(command, env=environment, text=True, capture_output=True, check=False)

    def calls(self) -> list[str]:
        return (self.home / "calls").read_text().splitlines()

    def sql(self) -> list[str]:
        return (self.run_folder / "init.sql").read_text().splitlines()


@pytest.fixture
def server(tmp_path: Path) -> Database:
    return Database(tmp_path)


def test_the_data_folder_is_made_once_and_kept(server: Database) -> None:
    assert server.start().returncode == 0
    (server.data / "mysql" / "records").write_text("of jobs")
    assert server.start().returncode == 0
    assert len(server.calls()) == 1
    assert (server.data / "mysql" / "records").read_text() == "of jobs"
    options = (server.home / "server").read_text().splitlines()
    assert options[0] == "--no-defaults"
    for option in (
        f"--datadir={server.data}/mysql",
        "--innodb-buffer-pool-size=268435456",
        "--innodb-lock-wait-timeout=900",
        "--loose-innodb-snapshot-isolation=OFF",
    ):
        assert option in options


def test_an_installation_that_was_broken_off_is_repeated(server: Database) -> None:
    (server.home / "broken").touch()
    failed = server.start()
    assert failed.returncode == 1
    assert "no space left" in failed.stderr
    assert not (server.data / "mysql").exists()
    (server.home / "broken").unlink()
    assert server.start().returncode == 0
    assert not (server.data / "new").exists()
    assert not (server.data / "mysql" / "half").exists()


def test_the_user_has_rights_on_this_database_only(server: Database) -> None:
    server.start()
    (grant,) = [line for line in server.sql() if line.startswith("GRANT")]
    assert grant == r"GRANT ALL PRIVILEGES ON `slurm\_acct\_db`.* TO 'slurm'@'%';"
    assert all(line.endswith(";") for line in server.sql())


@pytest.mark.parametrize(
    ("password", "in_sql", "in_file"),
    [
        ("geheim", "geheim", "geheim"),
        ("a'b", "a''b", "a'b"),
        ("a\\b", "a\\\\b", "a\\\\b"),
        ('a"b', 'a"b', 'a\\"b'),
        ("$HOME `id` $(id)", "$HOME `id` $(id)", "$HOME `id` $(id)"),
    ],
)
def test_a_password_is_taken_over_at_each_start_and_adds_no_statement(
    server: Database, password: str, in_sql: str, in_file: str
) -> None:
    server.start()
    server.password(password)
    assert server.start().returncode == 0
    assert f"ALTER USER 'slurm'@'%' IDENTIFIED BY '{in_sql}';" in server.sql()
    client = server.run_folder / "client.cnf"
    assert f'password="{in_file}"' in client.read_text().splitlines()
    assert client.stat().st_mode & 0o077 == 0
