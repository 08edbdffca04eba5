"""The part accounting of Backups and Restores, with a real database or a stand-in of its client."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

PROGRAMS = ("mariadbd", "mariadb-install-db", "mariadb", "mariadb-dump")
real = pytest.mark.skipif(
    os.geteuid() != 0 or not all(map(shutil.which, (*PROGRAMS, "restic"))),
    reason="needs a MariaDB, restic, and root",
)
NAME = "slurm_acct_db"
PASSWORD = 'it\'s \\ "odd" 100%'
BACKUP = ("backup", "--host=slurm1", "--tag=nightly", "--part=accounting")
RESTORE = ("restore", "--host=slurm1", "--tag=nightly", "--part=accounting")
TABLES = r"""
CREATE TABLE acct_table (id INT AUTO_INCREMENT PRIMARY KEY, name TINYTEXT, info BLOB);
INSERT INTO acct_table VALUES (1, 'a\nINSERT INTO `acct_table` VALUES\n(9)', X'00ff27');
INSERT INTO acct_table VALUES (2, 'é', NULL);
SET SESSION sql_mode = 'NO_AUTO_VALUE_ON_ZERO';
INSERT INTO acct_table VALUES (0, 'zero', '');
CREATE TABLE `my-cluster``s_job_table` (id INT, script LONGTEXT COMMENT 'a\nCREATE TABLE `b` (');
INSERT INTO `my-cluster``s_job_table` VALUES (1, REPEAT('#!/bin/sh\n', 300000));
CREATE TABLE notes (words TEXT);
INSERT INTO notes VALUES ('of somebody else');
CREATE VIEW seen_table AS SELECT * FROM notes;
"""
LISTED = f"""
SELECT table_name FROM information_schema.tables WHERE table_schema = '{NAME}' ORDER BY 1;
SELECT id, name, HEX(info) FROM acct_table ORDER BY id;
SELECT id, MD5(script) FROM `my-cluster``s_job_table`;
SELECT * FROM seen_table;
"""
DROPPED = """
DROP TABLE `my-cluster``s_job_table`;
UPDATE acct_table SET name = 'changed';
CREATE TABLE later_job_table (id INT);
"""
Run = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def program(backup: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """It works on folders, and finds its login there."""
    for part in ("jail", "accounting"):
        (tmp_path / "parts" / part / "files").mkdir(parents=True)
    (tmp_path / "database").mkdir()
    (tmp_path / "database/password").write_text(f"{PASSWORD}\n")
    (tmp_path / "bin").mkdir()
    variables = {
        "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}",
        "RESTIC_REPOSITORY": str(tmp_path / "repository"),
        "RESTIC_PASSWORD": "secret",
        "RESTIC_CACHE_DIR": str(tmp_path / "cache"),
        "DATABASE_HOST": "127.0.0.1",
        "DATABASE_PORT": "3306",
        "DATABASE_USER": "slurm",
        "DATABASE_NAME": NAME,
    }
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(backup, "PARTS", tmp_path / "parts")
    monkeypatch.setattr(backup, "MESSAGE", tmp_path / "message")
    module = module_of(backup)
    monkeypatch.setattr(module.Database.__init__, "__defaults__", (tmp_path / "database",))
    for name in ("CONNECT_S", "SESSIONS_S", "RETRY_S"):
        monkeypatch.setattr(module, name, 0.1)
    return backup


def module_of(program: ModuleType) -> Any:
    """The module of the database."""
    return __import__("sys").modules[program.Database.__module__]


@pytest.fixture
def run(program: ModuleType, tmp_path: Path) -> Run:
    def started(*arguments: str) -> tuple[int, dict[str, Any]]:
        with pytest.raises(SystemExit) as ended:
            program.main(arguments)
        found: dict[str, Any] = json.loads((tmp_path / "message").read_text())
        return int(str(ended.value.code)), found

    return started


class Server:
    """A MariaDB, and its root."""

    def __init__(self, folder: Path, port: str) -> None:
        self.folder, self.port = folder, port

    def sql(self, text: str, name: str = NAME) -> str:
        """What root is answered."""
        return self._client("-u", "root", "-N", "-B", name, stdin=text)

    def _client(self, *arguments: str, stdin: str) -> str:
        command = ["mariadb", "--no-defaults", f"--socket={self.folder}/socket", *arguments]
        return subprocess.run(
            [*command, "--default-character-set=utf8mb4"],
            input=stdin,
            capture_output=True,
            text=True,
            check=True,
        ).stdout


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Generator[Server]:
    folder = tmp_path_factory.mktemp("mariadb")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    install = ["mariadb-install-db", "--no-defaults", "--user=root", "--skip-test-db"]
    subprocess.run([*install, f"--datadir={folder}/data"], check=True, capture_output=True)
    command = ["mariadbd", "--no-defaults", "--user=root", f"--datadir={folder}/data"]
    command += [f"--socket={folder}/socket", f"--pid-file={folder}/pid", f"--port={port}"]
    command += ["--bind-address=127.0.0.1", "--innodb-use-native-aio=0", "--skip-name-resolve"]
    with (folder / "log").open("w") as log, subprocess.Popen(command, stderr=log) as process:
        made = Server(folder, port)
        try:
            for _ in range(300):
                with suppress(subprocess.CalledProcessError):
                    made.sql("DO 0", "mysql")
                    break
                time.sleep(0.1)
            yield made
        finally:
            process.terminate()


@pytest.fixture
def server(started: Server, program: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Server:
    """A database with records; its user may do nothing elsewhere."""
    monkeypatch.setenv("DATABASE_PORT", started.port)
    password = PASSWORD.replace("\\", "\\\\").replace("'", "''")
    started.sql(
        f"DROP DATABASE IF EXISTS {NAME}; CREATE DATABASE {NAME}; DROP USER IF EXISTS slurm;"
        f"CREATE USER slurm IDENTIFIED BY '{password}'; GRANT ALL ON {NAME}.* TO slurm;",
        "mysql",
    )
    started.sql(TABLES)
    return started


@real
def test_records_come_back_as_they_were(run: Run, server: Server, tmp_path: Path) -> None:
    """S175: also tables with odd names and rows of megabytes; those of others are left alone."""
    before = server.sql(LISTED)
    (tmp_path / "parts/jail/files/one").write_text("one")
    status, found = run(*BACKUP, "--part=jail")
    assert status == 0, found
    server.sql(DROPPED)
    assert server.sql("SHOW TABLES") != before
    (tmp_path / "parts/jail/files/one").write_text("two")
    (tmp_path / "parts/accounting/files").rename(tmp_path / "gone")
    assert run(*RESTORE, "--part=jail") == (0, {"snapshot": found["snapshot"]})
    assert server.sql(LISTED) == before
    assert (tmp_path / "parts/jail/files/one").read_text() == "one"
    assert run(*RESTORE)[0] == 0
    assert server.sql(LISTED) == before


@real
def test_a_database_that_is_gone_is_created(run: Run, server: Server) -> None:
    server.sql("DROP VIEW seen_table; DROP TABLE notes")
    before = server.sql(LISTED.rpartition("SELECT")[0])
    assert run(*BACKUP)[0] == 0
    server.sql(f"DROP DATABASE {NAME}")
    status, found = run(*BACKUP)
    assert status == 1
    where = f"database {NAME} at 127.0.0.1:{server.port}"
    assert f"{where}: it has no tables of slurmdbd" in found["error"]
    assert run(*RESTORE)[0] == 0
    assert server.sql(LISTED.rpartition("SELECT")[0]) == before


@real
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ((b"COLLATE=utf8mb4_", b"COLLATE=utf8mb4_x"), "Use a server of the version"),
        ((b"-- Dump completed", b""), "is not whole"),
        ((b"INSERT INTO `acct_table` VALUES", b"INSERT INTO `acct_table` ALUES"), "SQL syntax"),
    ],
)
def test_a_dump_that_cannot_be_loaded_changes_nothing(
    run: Run, server: Server, tmp_path: Path, change: tuple[bytes, bytes], words: str
) -> None:
    assert run(*BACKUP)[0] == 0
    path = tmp_path / "parts/accounting/files/accounting.sql"
    path.write_bytes(path.read_bytes().replace(*change))
    again = ("restic", "backup", "--host=slurm1", "--tag=nightly", str(path.parents[1]))
    subprocess.run(again, check=True, capture_output=True)
    server.sql(DROPPED)
    before = server.sql("SHOW TABLES; SELECT id, name FROM acct_table")
    (tmp_path / "parts/jail/files/one").write_text("one")
    status, found = run(*RESTORE)
    assert (status, words in found["error"]) == (3, True), found
    assert server.sql("SHOW TABLES; SELECT id, name FROM acct_table") == before


@real
def test_a_user_without_rights_and_a_wrong_password_are_named(
    run: Run, server: Server, tmp_path: Path
) -> None:
    assert run(*BACKUP)[0] == 0
    server.sql(f"REVOKE ALTER ON {NAME}.* FROM slurm")
    status, found = run(*RESTORE)
    assert status == 3
    assert "ALTER" in found["error"]
    assert f"Grant slurm all rights on {NAME}" in found["error"]
    assert "penstock" not in server.sql("SHOW TABLES")
    (tmp_path / "database/password").write_text("other")
    for arguments, expected in ((BACKUP, 1), (RESTORE, 3)):
        status, found = run(*arguments)
        assert status == expected
        assert "Access denied for user 'slurm'" in found["error"]
        assert found["error"].endswith("Correct the user and the password of the accounting")


@real
def test_a_database_in_use_is_not_replaced(run: Run, server: Server) -> None:
    """Such as by the slurmdbd of another cluster."""
    assert run(*BACKUP)[0] == 0
    other = ["mariadb", "--no-defaults", f"--socket={server.folder}/socket", "-u", "root", NAME]
    server.sql("GRANT PROCESS ON *.* TO slurm")
    with subprocess.Popen(other, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as session:
        time.sleep(0.5)
        status, found = run(*RESTORE)
        assert session.stdin is not None
        session.stdin.close()
    assert status == 3
    assert re.search(r"it is in use by session \d+ \(root@localhost\)", found["error"])


@real
def test_a_restore_that_was_killed_while_it_loaded_is_repeated(run: Run, server: Server) -> None:
    before = server.sql(LISTED)
    assert run(*BACKUP)[0] == 0
    server.sql("CREATE TABLE penstock_new_1 (id INT); CREATE TABLE penstock_old_7 (id INT)")
    server.sql(DROPPED)
    assert run(*RESTORE)[0] == 0
    assert server.sql(LISTED) == before


class Tables:
    """A database whose tables have only a content: their first name. It ends after some moves."""

    def __init__(self, database: Any, tables: Sequence[str]) -> None:
        self.tables = {name: f"old {name}" for name in tables}
        self.rows: list[tuple[int, str, bool]] = []
        self.moves = -1
        database._sql = self.sql  # the seam of this test
        self.database = database

    def sql(self, text: str, *, inside: bool = True) -> list[list[str]]:
        del inside
        if text.startswith("SELECT HEX(table_name)"):
            return [[name.encode().hex()] for name in sorted(self.tables)]
        if text.startswith("SELECT number"):
            return [[str(n), name.encode().hex(), str(int(new))] for n, name, new in self.rows]
        if text.startswith("CREATE TABLE penstock_restore"):
            self.tables["penstock_restore"] = ""
        elif text.startswith("INSERT INTO penstock_restore"):
            found = re.findall(r"\((\d+), CONVERT\(X'(\w+)' USING utf8mb4\), (True|False)\)", text)
            self.rows = [(int(n), bytes.fromhex(x).decode(), new == "True") for n, x, new in found]
        elif text.startswith("RENAME"):
            for old, new in re.findall(r"`([^`]+)` TO `([^`]+)`", text):
                if self.moves == 0:
                    raise KeyboardInterrupt
                self.moves -= 1
                assert new not in self.tables
                self.tables[new] = self.tables.pop(old)
        elif text.startswith("DROP TABLE"):
            for name in text.removeprefix("DROP TABLE ").replace("`", "").split(", "):
                del self.tables[name]
        return []


@pytest.mark.parametrize("moves", range(6))
@pytest.mark.parametrize("tables", [("a_table", "b_table", "notes"), ("notes",), ()])
def test_a_server_that_ends_between_two_names_is_brought_to_the_whole_dump(
    program: ModuleType, moves: int, tables: tuple[str, ...]
) -> None:
    database = program.Database()
    model = Tables(database, tables)
    for name in ("b_table", "c_table"):
        database._renamed(f"CREATE TABLE `{name}` (\n".encode())
    model.tables |= {"penstock_new_1": "new b_table", "penstock_new_2": "new c_table"}
    model.moves = moves
    with suppress(KeyboardInterrupt):
        database.swap()
    is_begun = "penstock_restore" in model.tables
    model.moves = -1
    assert database.prepare() is is_begun
    notes = {"notes": "old notes"} if "notes" in tables else {}
    assert model.tables == {"b_table": "new b_table", "c_table": "new c_table", **notes}


def stand_in(tmp_path: Path, name: str, script: str) -> None:
    """A program that notes its arguments, and what it is asked."""
    path = tmp_path / f"bin/{name}"
    noted = f'echo "{name} $*" >>{tmp_path}/calls\ncase $1 in --defaults-file=*) '
    noted += f"stat -c %a ${{1#*=}} >{tmp_path}/mode; cat ${{1#*=}} >{tmp_path}/options;; esac\n"
    path.write_text(f"#!/bin/sh\n{noted}{script}\n")
    path.chmod(0o755)


def has_tables(tmp_path: Path, *tables: str) -> None:
    """A client that answers with tables."""
    listed = "".join(f"{name.encode().hex()}\\n" for name in tables)
    stand_in(tmp_path, "mariadb", f"grep -q 'HEX(table_name)' && printf '{listed}'; exit 0")


def test_the_password_is_in_a_private_file_for_a_moment_and_nowhere_else(
    run: Run, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    has_tables(tmp_path, "acct_table", "notes")
    stand_in(tmp_path, "mariadb-dump", "echo '-- Dump completed'")
    stand_in(tmp_path, "restic", '[ $1 != backup ] || echo \'{"message_type": "summary"}\'')
    assert run(*BACKUP)[0] == 0
    calls = (tmp_path / "calls").read_text()
    dump = next(one for one in calls.splitlines() if one.startswith("mariadb-dump"))
    assert dump.endswith(f"-- {NAME} acct_table")
    assert "--single-transaction" in dump
    assert (tmp_path / "mode").read_text().strip() == "600"
    assert 'password="it\'s \\\\ \\"odd\\" 100%"' in (tmp_path / "options").read_text()
    said = capfd.readouterr()
    assert "odd" not in calls + said.out + said.err + (tmp_path / "message").read_text()
    assert not Path(re.findall(r"--defaults-file=(\S+)", calls)[0]).exists()


def test_a_certificate_is_verified_where_an_authority_is_given(run: Run, tmp_path: Path) -> None:
    has_tables(tmp_path)
    stand_in(tmp_path, "restic", "exit 0")
    run(*BACKUP)
    assert 'ssl-verify-server-cert="0"' in (tmp_path / "options").read_text()
    (tmp_path / "database/ca.crt").touch()
    run(*BACKUP)
    options = (tmp_path / "options").read_text()
    assert f'ssl-ca="{tmp_path}/database/ca.crt"' in options
    assert 'ssl-verify-server-cert="1"' in options


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (
            "ERROR 2005 (HY000): Unknown server host 'db' (-2)",
            f"database {NAME} at 127.0.0.1:3306: Unknown server host 'db' (-2). Start the "
            "database, or correct its address",
        ),
        (
            "ERROR 2026 (HY000): TLS/SSL error: certificate has expired",
            f"database {NAME} at 127.0.0.1:3306: TLS/SSL error: certificate has expired. Correct "
            "tls of the accounting",
        ),
        ("no words of SQL", f"database {NAME} at 127.0.0.1:3306: no words of SQL"),
    ],
)
def test_a_database_that_does_not_answer_fails_a_restore_before_a_change(
    run: Run, tmp_path: Path, answer: str, words: str
) -> None:
    stand_in(tmp_path, "mariadb", f'echo "{answer}" >&2; exit 1')
    assert run(*RESTORE, "--part=jail") == (3, {"error": words})
    assert "restic" not in (tmp_path / "calls").read_text()
    stand_in(tmp_path, "restic", "exit 0")
    assert run(*BACKUP)[0] == 1
    assert "restic backup" not in (tmp_path / "calls").read_text()


def test_a_dump_that_cannot_be_read_changes_no_file(run: Run, tmp_path: Path) -> None:
    paths = [str(tmp_path / "parts" / one) for one in ("accounting", "jail")]
    listed = json.dumps([{"id": "abcd", "short_id": "ab", "time": "1", "paths": paths}])
    has_tables(tmp_path)
    fails = "echo 'pack is damaged' >&2; exit 1"
    stand_in(tmp_path, "restic", f"case $1 in snapshots) echo '{listed}';; dump) {fails};; esac")
    assert run(*RESTORE, "--part=jail") == (3, {"error": "pack is damaged"})
    assert "restic restore" not in (tmp_path / "calls").read_text()
    assert not list((tmp_path / "parts/jail/files").iterdir())


def test_an_image_without_the_client_is_named(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(tmp_path, "restic", "exit 0")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}")
    words = "the image has no mariadb. Remove spec.image, or name one with it"
    assert run(*BACKUP) == (1, {"error": words})
