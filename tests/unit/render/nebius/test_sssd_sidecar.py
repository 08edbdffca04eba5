"""The script that runs sssd beside a daemon, with a stand-in for sssd."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from penstock.render.parts.script import script

CONF = "[sssd]\ndomains = company\n[domain/company]\nid_provider = ldap\n"
NOBODY = "domains = nobody"
# It prints the file that it was given, and ends if that has the word "wrong".
SSSD = """#!/bin/sh
trap 'echo end >>"$SSSD_ROOT/starts"; exit 0' TERM
echo "$*" >>"$SSSD_ROOT/options"
echo $$ >"$SSSD_ROOT/pid"
stat -c %a "$3" >"$SSSD_ROOT/mode"
cat "$3" >>"$SSSD_ROOT/history"
cp "$3" "$SSSD_ROOT/seen.new" && mv "$SSSD_ROOT/seen.new" "$SSSD_ROOT/seen"
echo start >>"$SSSD_ROOT/starts"
! grep -q wrong "$3" || exit 4
[ ! -e "$SSSD_ROOT/say" ] || cat "$SSSD_ROOT/say" >&2
while :; do /bin/sleep 0.05; done
"""


class Sidecar:
    """A root with the mounts of the container."""

    def __init__(self, folder: Path) -> None:
        self.root = folder
        for name in ("etc/sssd", "mnt/ldapCA", "run", "var/lib/sss/pipes"):
            (folder / name).mkdir(parents=True)
        self.program = folder / "sssd"
        self.program.write_text(SSSD)
        self.program.chmod(0o755)
        self.conf = folder / "etc/sssd/sssd.conf"
        self.log = folder / "log"
        (folder / "bin").mkdir()
        sleep = folder / "bin/sleep"
        sleep.write_text(
            f'#!/bin/sh\necho >>"$SSSD_ROOT/pauses"\nexec {shutil.which("sleep")} "$@"\n'
        )
        sleep.chmod(0o755)
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, patience: str = "600", level: str = "3") -> None:
        """Run the script."""
        environment = {
            "PATH": f"{self.root}/bin:{os.environ['PATH']}",
            "SSSD": str(self.program),
            "SSSD_ROOT": str(self.root),
            "SSSD_PAUSE": "0.05",
            "SSSD_PATIENCE": patience,
        }
        command = ["/bin/sh", "-c", script("sssd_sidecar"), "sssd", level]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)

    def stop(self) -> int:
        """The exit status after SIGTERM."""
        if self.process is None:
            return 0
        self.process.terminate()
        return self.process.wait(10)

    def seen(self) -> str:
        """The file with which sssd runs."""
        path = self.root / "seen"
        return path.read_text() if path.exists() else ""

    def kill(self) -> None:
        """Kill the stand-in, as the kernel does without memory."""
        os.kill(int((self.root / "pid").read_text()), signal.SIGKILL)

    def until_compared(self) -> None:
        """Wait until the script has compared the files of now with those of before."""
        path = self.root / "pauses"
        before = len(path.read_bytes())
        until(lambda: len(path.read_bytes()) >= before + 3)

    def starts(self) -> int:
        """How often it was started."""
        path = self.root / "starts"
        return path.read_text().split().count("start") if path.exists() else 0


@pytest.fixture
def sidecar(tmp_path: Path) -> Iterator[Sidecar]:
    found = Sidecar(tmp_path)
    yield found
    found.stop()


def until(is_so: Callable[[], object]) -> None:
    end = time.monotonic() + 20
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.parametrize(("level", "options"), [("3", " -d 3"), ("0", " -d 0x0470")])
def test_sssd_has_a_copy_that_only_root_reads_and_the_declared_level(
    sidecar: Sidecar, level: str, options: str
) -> None:
    sidecar.conf.write_text(CONF)
    sidecar.start(level=level)
    until(lambda: sidecar.seen() == CONF)
    assert (sidecar.root / "mode").read_text().strip() == "600"
    own = sidecar.root / "run/penstock-sssd.conf"
    wanted = f"--interactive -c {own}{options} --logger=stderr"
    assert (sidecar.root / "options").read_text().splitlines() == [wanted]
    pipes = sidecar.root / "var/lib/sss/pipes"
    modes = [stat.S_IMODE(one.stat().st_mode) for one in (pipes, pipes / "private")]
    assert modes == [0o755, 0o700]


def test_the_log_of_level_0_has_no_traces_but_those_of_connections(sidecar: Sidecar) -> None:
    """They alone show why a directory rejects sssd, and that it accepts it again."""
    shown = (
        "[be] [x] (0x0020): Unable to establish connection [1]: Authentication Failed",
        "[be] [x] (0x0400): Connection established.",
        "[be] [x] (0x0400): Bind result: Success(0), no errmsg set",
        "[be] [x] (0x0400): Bind result: Invalid credentials(49), no errmsg set",
    )
    hidden = (
        "[be] [x] (0x0400): Search result: Success(0)",
        "[RID#12] half of a line",
    )
    (sidecar.root / "say").write_text("".join(f"{line}\n" for line in (*hidden, *shown)))
    sidecar.conf.write_text(CONF)
    sidecar.start(level="0")
    until(lambda: shown[-1] in sidecar.log.read_text())
    assert sidecar.log.read_text().splitlines() == list(shown)


TRACE = "[be] [x] (0x0400): [RID#4] "


def search(base: str, result: str) -> list[str]:
    """Both traces of a search, as sssd 2.12 prints them."""
    return [
        f"{TRACE}ldap_search_ext called: server: [1] filter: [(uid=x] base: [y)] "
        f"base: [{base}]; msgid = 1",
        f"{TRACE}Search result: {result}, no errmsg set",
    ]


ABSENT, PRESENT = "No such object(32)", "Success(0)"


def test_the_log_of_level_0_names_a_search_base_that_does_not_exist_and_its_return(
    sidecar: Sidecar,
) -> None:
    """Once each; an entry or another base that is missing is no mistake."""
    said = [
        *(
            one
            for base in ("dc=a", "uid=gone,dc=a", "ou=sudo,dc=a")
            for one in search(base, ABSENT)
        ),
        *search("DC=A", ABSENT),
        *search("ou=b c", ABSENT),
        f"{TRACE}Search result: {ABSENT}",
        *(one for _ in range(2) for one in search("dc=a", PRESENT)),
        f"{TRACE}Connection established.",
    ]
    (sidecar.root / "say").write_text("".join(f"{line}\n" for line in said))
    sidecar.conf.write_text(
        f"{CONF}ldap_search_base = dc=a\nldap_user_search_base=ou=B c ?subtree?(x=*)\n"
        "ldap_sudo_search_base = ou=sudo,dc=a\n"
    )
    sidecar.start(level="0")
    until(lambda: said[-1] in sidecar.log.read_text())
    assert sidecar.log.read_text().splitlines() == [
        f"{TRACE}Search result: {ABSENT}, no errmsg set, base: [dc=a]",
        f"{TRACE}Search result: {ABSENT}, no errmsg set, base: [ou=b c]",
        f"{TRACE}Search result: {PRESENT}, no errmsg set, base: [dc=a]",
        said[-1],
    ]


def test_names_in_searches_are_no_commands(sidecar: Sidecar) -> None:
    """Of requests and bases, which anybody may choose who looks a user up."""
    harm = f"$(touch {sidecar.root}/harm)"
    said = [
        line.replace("RID#4", f"RID#{harm}") for line in search(f"dc=a{harm}`{harm}`'\";", ABSENT)
    ]
    said.append(f"{TRACE}Connection established.")
    (sidecar.root / "say").write_text("".join(f"{line}\n" for line in said))
    sidecar.conf.write_text(f"{CONF}ldap_search_base = dc=a{harm}`{harm}`'\";\n")
    sidecar.start(level="0")
    until(lambda: said[-1] in sidecar.log.read_text())
    assert len(sidecar.log.read_text().splitlines()) == 2
    assert not (sidecar.root / "harm").exists()


def test_a_level_in_the_file_is_not_overridden_by_the_fields_default(sidecar: Sidecar) -> None:
    sidecar.conf.write_text(f"{CONF}debug_level = 9\n")
    sidecar.start(level="0")
    until(lambda: "debug_level" in sidecar.seen())
    assert " -d " not in (sidecar.root / "options").read_text()


def test_a_changed_file_and_a_changed_certificate_start_sssd_again(sidecar: Sidecar) -> None:
    sidecar.conf.write_text(CONF)
    sidecar.start()
    until(lambda: sidecar.seen() == CONF)
    sidecar.conf.write_text(CONF + "cache_credentials = true\n")
    until(lambda: "cache_credentials" in sidecar.seen())
    before = sidecar.starts()
    (sidecar.root / "mnt/ldapCA/ca.crt").write_text("certificate")
    until(lambda: sidecar.starts() > before)


def test_deleted_files_change_nothing(sidecar: Sidecar) -> None:
    certificate = sidecar.root / "mnt/ldapCA/ca.crt"
    sidecar.conf.write_text(CONF)
    certificate.write_text("certificate")
    sidecar.start()
    until(lambda: sidecar.seen() == CONF)
    sidecar.conf.unlink()
    certificate.unlink()
    sidecar.until_compared()
    assert sidecar.starts() == 1
    # sssd that ends by itself, and one that starts again for another reason, have the same file.
    sidecar.kill()
    until(lambda: sidecar.starts() == 2)
    certificate.write_text("another")
    until(lambda: sidecar.starts() == 3)
    assert (sidecar.root / "history").read_text() == CONF * 3


def test_windows_line_ends_are_taken_out(sidecar: Sidecar) -> None:
    sidecar.conf.write_bytes(CONF.replace("\n", "\r\n").encode())
    sidecar.start()
    until(lambda: sidecar.seen() == CONF)


def test_without_a_file_sssd_runs_with_nobody_until_there_is_one(sidecar: Sidecar) -> None:
    sidecar.start()
    until(lambda: NOBODY in sidecar.seen())
    assert "absent or empty" in sidecar.log.read_text()
    sidecar.conf.write_text(CONF)
    until(lambda: sidecar.seen() == CONF)


def test_a_file_with_which_sssd_ends_is_tried_again_and_a_right_one_at_once(
    sidecar: Sidecar,
) -> None:
    sidecar.conf.write_text(f"{CONF}wrong\n")
    sidecar.start(patience="2")
    until(lambda: NOBODY in sidecar.seen())
    assert "users of a directory are unknown" in sidecar.log.read_text()
    until(lambda: sidecar.starts() >= 3)
    until(lambda: NOBODY in sidecar.seen())
    sidecar.conf.write_text(CONF)
    until(lambda: sidecar.seen() == CONF)


def test_a_file_without_a_domain_is_not_tried_again(sidecar: Sidecar) -> None:
    sidecar.conf.write_text("[sssd]\nwrong\n")
    # On a busy node sssd may need seconds to end, which must not count as having worked.
    sidecar.start(patience="5")
    until(lambda: NOBODY in sidecar.seen())
    # Later than a file with a domain would be tried again.
    until(lambda: time.time() - (sidecar.root / "seen").stat().st_mtime > 6)
    sidecar.kill()
    until(lambda: sidecar.starts() == 3)
    assert (sidecar.root / "history").read_text().count("wrong") == 1


def test_it_ends_with_sssd(sidecar: Sidecar) -> None:
    sidecar.conf.write_text(CONF)
    sidecar.start()
    until(lambda: sidecar.starts() == 1)
    assert sidecar.stop() == 0
    assert (sidecar.root / "starts").read_text().split() == ["start", "end"]


def test_an_image_without_sssd_is_named_as_the_fault(sidecar: Sidecar) -> None:
    sidecar.program.unlink()
    sidecar.start()
    until(lambda: "name another one in sssd.image" in sidecar.log.read_text())
    assert sidecar.process is not None
    assert sidecar.process.wait(20) == 127
