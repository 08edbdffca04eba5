"""The database of slurmdbd as a dump: made by mariadb-dump, and loaded by mariadb.

A dump is loaded under other names, beside the tables in use. Once all of it is there, one RENAME
gives its tables their names. So slurmdbd never finds half of a dump, and a dump that the server
rejects changes nothing.

Only tables whose names end in `_table` are copied and replaced, as those of slurmdbd do. Routines
are not copied: slurmdbd creates its own at each start, and a routine names a user of its server.

The address is in the variables DATABASE_HOST, DATABASE_PORT, DATABASE_USER and DATABASE_NAME.
Source: mariadb-dump(1); MariaDB Server documentation, "RENAME TABLE" and "Option Files".
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO, NamedTuple, cast

SECRETS = Path("/etc/penstock/database")
"""Has the file `password`; and ca.crt, or tls.crt and tls.key, where TLS is declared."""
DUMP = "accounting.sql"
CONNECT_S = 120.0
"""The database may start at the same time."""
SESSIONS_S = 60.0
"""A session of a pod that was killed ends with its last statement."""
RETRY_S = 2.0
SUFFIX = "_table"
NEW, OLD, MARKER = "penstock_new_", "penstock_old_", "penstock_restore"
"""Tables of a dump, tables that they replace, and the table with the names of both.

The marker exists from the end of the load until all tables have their names.
"""
_LEFT = re.compile(rf"({NEW}|{OLD})[0-9]+")
_STATEMENT = re.compile(rb"(CREATE TABLE|INSERT INTO) `((?:[^`]|``)+)`")
"""At the begin of a line: in a value, mariadb-dump writes a line break as two characters."""
_WHOLE = b"-- Dump completed"
_CODE = re.compile(r"(?:ERROR|[Ee]rror:?) ([0-9]{4})(?: \([0-9A-Z]+\))?(?: at line [0-9]+)?: (.*)")
_READ = 4096
_DUMP_OPTIONS = (
    "--single-transaction",
    "--quick",
    "--hex-blob",
    "--default-character-set=utf8mb4",
    "--max-allowed-packet=1G",
    "--no-tablespaces",
    "--skip-add-drop-table",
    "--skip-add-locks",
    "--skip-disable-keys",
    "--skip-dump-date",
    "--skip-lock-tables",
    "--skip-triggers",
)
_AWAY = (1040, 2002, 2003, 2005, 2006, 2013)
"""Too many connections, no connection, no such host, a connection that was lost."""
_TLS = (2026,)
_LOGIN = (1045, 1698)
_RIGHTS = (1044, 1142, 1227)
_OLDER = (1115, 1273)
"""Unknown character set and unknown collation."""
_FULL = (1021, 1114)


class DatabaseError(Exception):
    """The database, or a program for it, answers with an error. `code` is its number, or 0."""

    def __init__(self, words: str, code: int = 0) -> None:
        super().__init__(words)
        self.code = code


class _Row(NamedTuple):
    """A row of the marker: the number of a table, its name, and whether the dump has it."""

    number: int
    name: str
    is_new: bool


class Database:
    """The database that the variables name. Use it as a context: it writes a file with its login.

    Each method raises DatabaseError.
    """

    def __init__(self, secrets: Path = SECRETS) -> None:
        self._secrets = secrets
        self._host = os.environ.get("DATABASE_HOST", "")
        self._port = os.environ.get("DATABASE_PORT", "3306")
        self._user = os.environ.get("DATABASE_USER", "")
        self._name = os.environ.get("DATABASE_NAME", "slurm_acct_db")
        self._folder = ""
        self._loaded: dict[str, int] = {}

    def __enter__(self) -> Database:
        self._folder = tempfile.mkdtemp(prefix="database-")
        path = Path(self._folder, "client.cnf")
        path.touch(mode=0o600)
        path.write_text(self._options(), errors="surrogateescape")
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def dump(self, path: Path) -> None:
        """Write a consistent dump of the tables of slurmdbd."""
        self._wait()
        tables = [one for one in self._tables() if one.endswith(SUFFIX)]
        if not tables:
            raise self._error("it has no tables of slurmdbd. Start slurmdbd once")
        command = [*self._command("mariadb-dump"), *_DUMP_OPTIONS, "--", self._name, *tables]
        with path.open("wb") as file, tempfile.TemporaryFile() as errors:
            done = _run(command, stdout=file, stderr=errors)
            if done != 0:
                raise self._failure(errors, f"mariadb-dump ended with status {done}")

    def prepare(self) -> bool:
        """Have the database to itself, without tables that an earlier load left.

        Returns whether that one had begun to replace tables: then it is brought to its end.
        """
        self._wait()
        self._sql(f"CREATE DATABASE IF NOT EXISTS {_quoted(self._name)}", inside=False)
        self._wait_for_sessions()
        begun = MARKER in self._tables()
        if begun:
            self._finish()
        self.discard()
        return begun

    def load(self, dump: Iterable[bytes]) -> None:
        """Load the lines of a dump beside the tables in use."""
        self._loaded, last = {}, b""
        # It ends at the first error.
        command = [*self._command("mariadb"), "--batch", "--max-allowed-packet=1G", self._name]
        with (
            tempfile.TemporaryFile() as errors,
            _started(command, stdin=subprocess.PIPE, errors=errors) as client,
        ):
            given = cast("IO[bytes]", client.stdin)
            # Of a client that has ended, its words are of use.
            with contextlib.suppress(BrokenPipeError):
                for line in dump:
                    given.write(self._renamed(line))
                    last = line if line.strip() else last
            with contextlib.suppress(BrokenPipeError):
                given.close()
            status = client.wait()
            if status != 0:
                raise self._failure(errors, f"mariadb ended with status {status}")
        if not last.startswith(_WHOLE) or not self._loaded:
            raise self._error("the dump in the snapshot is not whole")
        # A RENAME needs rights that loading does not.
        self._rename([(f"{NEW}1", f"{OLD}1"), (f"{OLD}1", f"{NEW}1")])

    def swap(self) -> None:
        """Put the loaded tables in the place of those in use, which are deleted."""
        old = [one for one in self._tables() if one.endswith(SUFFIX) and one not in self._loaded]
        rows = [_Row(number, name, True) for name, number in self._loaded.items()]
        rows += [_Row(len(rows) + number, name, False) for number, name in enumerate(old, 1)]
        values = ", ".join(f"({one.number}, {_literal(one.name)}, {one.is_new})" for one in rows)
        columns = "number INT PRIMARY KEY, name VARCHAR(64) NOT NULL, is_new BOOL NOT NULL"
        self._sql(f"CREATE TABLE {MARKER} ({columns}) ENGINE=InnoDB CHARACTER SET utf8mb4")
        self._sql(f"INSERT INTO {MARKER} VALUES {values}")  # noqa: S608 (numbers and literals)
        self._finish()
        self.discard()

    def discard(self) -> None:
        """Delete loaded tables, and those that were replaced."""
        if left := [_quoted(one) for one in self._tables() if _LEFT.fullmatch(one)]:
            self._sql(f"DROP TABLE {', '.join(left)}")

    def _finish(self) -> None:
        """Give all tables in the marker their names; some may have them, after an earlier try."""
        there = set(self._tables())
        found = self._sql(f"SELECT number, HEX(name), is_new FROM {MARKER}")  # noqa: S608 (a constant)
        rows = [_Row(int(one[0]), _text(one[1]), one[2] == "1") for one in found]
        moves: list[tuple[str, str]] = []
        for one in rows:
            waits = not one.is_new or f"{NEW}{one.number}" in there
            if one.name in there and f"{OLD}{one.number}" not in there and waits:
                moves.append((one.name, f"{OLD}{one.number}"))
        moves += [(f"{NEW}{one.number}", one.name) for one in rows if f"{NEW}{one.number}" in there]
        if moves:
            self._rename(moves)
        self._sql(f"DROP TABLE {MARKER}")

    def _rename(self, moves: Sequence[tuple[str, str]]) -> None:
        """In one statement, of which the server takes all back if one fails."""
        pairs = ", ".join(f"{_quoted(old)} TO {_quoted(new)}" for old, new in moves)
        self._sql(f"RENAME TABLE {pairs}")

    def _renamed(self, line: bytes) -> bytes:
        """A line of a dump, with the name under which its table is loaded."""
        found = _STATEMENT.match(line)
        if found is None:
            return line
        name = found[2].replace(b"``", b"`").decode()
        if found[1] == b"CREATE TABLE":
            self._loaded[name] = len(self._loaded) + 1
        if name not in self._loaded:
            raise self._error(f"the dump in the snapshot does not create its table {name}")
        return b"%s `%s%d`%s" % (
            found[1],
            NEW.encode(),
            self._loaded[name],
            line[found.end() :],
        )

    def _wait(self) -> None:
        """Wait for an answer."""
        until, reported = time.monotonic() + CONNECT_S, False
        while True:
            try:
                self._sql("DO 0", inside=False)
            except DatabaseError as error:
                if error.code not in _AWAY or time.monotonic() > until:
                    raise
                if not reported:
                    print(f"waits for an answer: {error}", flush=True)
                reported = True
                time.sleep(RETRY_S)
            else:
                return

    def _wait_for_sessions(self) -> None:
        """Wait until sessions that use the database have ended: their writes would be lost.

        Those that begin meanwhile are probes: slurmdbd keeps its sessions.
        """
        until, present = time.monotonic() + SESSIONS_S, self._sessions()
        first = frozenset(present)
        while left := sorted(first & present.keys()):
            if time.monotonic() > until:
                words = ", ".join(f"{one} ({present[one]})" for one in left)
                raise self._error(
                    f"it is in use by session {words}. End it: another slurmdbd may use the "
                    "same database"
                )
            time.sleep(RETRY_S)
            present = self._sessions()

    def _sessions(self) -> dict[str, str]:
        """Users and hosts by the id of their session. Those of other users may be hidden."""
        columns = "id, CONCAT(user, '@', host)"
        where = f"db = {_literal(self._name)} AND id <> CONNECTION_ID()"
        found = self._select(columns, "information_schema.processlist", where)
        return {one[0]: one[1] for one in found}

    def _tables(self) -> list[str]:
        where = f"table_schema = {_literal(self._name)} AND table_type = 'BASE TABLE'"
        found = self._select("HEX(table_name)", "information_schema.tables", where)
        return sorted(_text(one[0]) for one in found)

    def _select(self, columns: str, table: str, where: str) -> list[list[str]]:
        text = f"SELECT {columns} FROM {table} WHERE {where}"  # noqa: S608 (literals)
        return self._sql(text, inside=False)

    def _sql(self, statements: str, *, inside: bool = True) -> list[list[str]]:
        """Rows of the answer; `inside` the database unless it may be absent."""
        command = [*self._command("mariadb"), "--batch", "--skip-column-names"]
        command += ["--connect-timeout=10", *([self._name] if inside else [])]
        with tempfile.TemporaryFile() as asked, tempfile.TemporaryFile() as errors:
            asked.write(statements.encode())
            asked.seek(0)
            with tempfile.TemporaryFile() as answer:
                done = _run(command, stdin=asked, stdout=answer, stderr=errors)
                if done != 0:
                    raise self._failure(errors, f"mariadb ended with status {done}")
                answer.seek(0)
                return [line.split("\t") for line in answer.read().decode().splitlines()]

    def _command(self, program: str) -> list[str]:
        return [program, f"--defaults-file={self._folder}/client.cnf"]

    def _options(self) -> str:
        """The option file: nobody sees the password among the arguments of a process."""
        password = (self._secrets / "password").read_text(errors="surrogateescape").rstrip("\r\n")
        values = {
            "protocol": "tcp",
            "host": self._host,
            "port": self._port,
            "user": self._user,
            "password": password,
        }
        files = {"ssl-ca": "ca.crt", "ssl-cert": "tls.crt", "ssl-key": "tls.key"}
        for option, name in files.items():
            if (self._secrets / name).exists():
                values[option] = str(self._secrets / name)
        # Without an authority no certificate can be verified; TLS is used if the server has it.
        values["ssl-verify-server-cert"] = "1" if "ssl-ca" in values else "0"
        lines = (f'{option}="{_escaped(value)}"\n' for option, value in values.items())
        return "[client]\n" + "".join(lines)

    def _failure(self, errors: IO[bytes], otherwise: str) -> DatabaseError:
        """The last words of a program that failed. Its statement may stand before, of any size."""
        size = errors.seek(0, os.SEEK_END)
        errors.seek(max(0, size - _READ))
        lines = [one for one in errors.read().decode(errors="replace").splitlines() if one.strip()]
        found = next(filter(None, (_CODE.search(one) for one in reversed(lines))), None)
        if found is None:
            return self._error(lines[-1] if lines else otherwise)
        return self._error(found[2], int(found[1]))

    def _error(self, words: str, code: int = 0) -> DatabaseError:
        advice = {
            _AWAY: "Start the database, or correct its address",
            _TLS: "Correct tls of the accounting",
            _LOGIN: "Correct the user and the password of the accounting",
            _RIGHTS: f"Grant {self._user} all rights on {self._name}",
            _OLDER: "Use a server of the version that was copied, or of a later one",
            _FULL: "Give the database room for the present and the restored records",
        }
        more = next((text for codes, text in advice.items() if code in codes), "")
        where = f"database {self._name} at {self._host}:{self._port}"
        return DatabaseError(f"{where}: {words}{f'. {more}' if more else ''}", code)


def _run(
    command: Sequence[str], *, stdout: IO[bytes], stderr: IO[bytes], stdin: IO[bytes] | None = None
) -> int:
    """Exit status. Raises DatabaseError for a program that the image lacks."""
    given = stdin if stdin is not None else subprocess.DEVNULL
    try:
        done = subprocess.run(command, stdin=given, stdout=stdout, stderr=stderr, check=False)
    except FileNotFoundError:
        raise _absent(command[0]) from None
    return done.returncode


def _started(command: Sequence[str], *, stdin: int, errors: IO[bytes]) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(command, stdin=stdin, stdout=subprocess.DEVNULL, stderr=errors)
    except FileNotFoundError:
        raise _absent(command[0]) from None


def _absent(program: str) -> DatabaseError:
    return DatabaseError(f"the image has no {program}. Remove spec.image, or name one with it")


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def _literal(text: str) -> str:
    """A string that needs no quotes, whatever the mode of the server."""
    return f"CONVERT(X'{text.encode().hex()}' USING utf8mb4)"


def _text(hexadecimal: str) -> str:
    return bytes.fromhex(hexadecimal).decode()


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"')
