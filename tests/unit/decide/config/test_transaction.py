"""The next step of a changed configuration: every state, and after a crash behind each write."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pytest

from penstock.api.cluster.marks import (
    CONFIG_CANDIDATE,
    CONFIG_HASH,
    CONFIG_LIVE,
    CONFIG_RESTART,
    TRIES_CONFIG,
)
from penstock.api.slinky.controller import ControllerStatus
from penstock.controllers.config.transaction import rejected_before
from penstock.decide.config.reconfigure_log import Acknowledgements, read
from penstock.decide.config.transaction import is_settled, next_step
from penstock.decide.config.view import ConfigStep, ConfigView, Stage, Version
from penstock.render.config.content import content_hash
from penstock.slurm.conf.apply_method import Force


def version(text: str) -> Version:
    data = {"slurm.conf": text}
    return Version(data, content_hash(data))


OLD = version("ClusterName=x\n")
NEW = version("ClusterName=x\nSchedulerTimeSlice=5\n")
BAD = version("ClusterName=x\nBogusKey=1\n")
REMARK = version("ClusterName=x # a remark\n")
PORT = version("ClusterName=x\nSlurmctldPort=7000\n")
PARTITION = version("ClusterName=x\nPartitionName=a Nodes=ALL\n")
WORKED = ConfigView(
    candidate=OLD,
    startup=OLD,
    last_known_good=OLD,
    has_started=True,
    is_ready=True,
    has_own_sidecar=True,
    active=OLD.hash,
    marks={CONFIG_HASH: OLD.hash},
)


def asked(wanted: Version, *lines: str, view: ConfigView = WORKED) -> ConfigView:
    """The candidates were shown, and this was said of them."""
    marks = {**(view.marks or {}), CONFIG_CANDIDATE: wanted.hash}
    acks = read("".join(f"penstock: {line}\n" for line in (f"effective {OLD.hash}", *lines)))
    return replace(view, candidate=wanted, marks=marks, acks=acks)


def test_a_cluster_at_rest_needs_nobody_to_be_asked():
    assert is_settled(WORKED)
    found = next_step(WORKED)
    assert (found.stage, found.startup, found.last_known_good) == (
        Stage.EFFECTIVE,
        OLD.data,
        OLD.data,
    )
    assert not is_settled(replace(WORKED, candidate=NEW))
    assert not is_settled(replace(WORKED, startup=None))


def test_a_changed_file_is_shown_to_the_trial_start_and_to_nobody_else():
    found = next_step(replace(WORKED, candidate=NEW, acks=Acknowledgements(active=OLD.hash)))
    assert (found.stage, found.startup, found.last_known_good) == (Stage.TRYING, OLD.data, OLD.data)
    assert found.marks[CONFIG_CANDIDATE] == NEW.hash
    assert found.marks[CONFIG_HASH] == OLD.hash


@pytest.mark.parametrize(
    "acks", [None, Acknowledgements(), Acknowledgements(tried={BAD.hash: None})]
)
def test_not_knowing_is_no_yes(acks: Acknowledgements | None):
    found = next_step(replace(asked(NEW), acks=acks, why="nobody answers"))
    assert (found.stage, found.startup) == (Stage.TRYING, OLD.data)


def test_a_verdict_counts_only_once_the_marks_that_go_with_it_are_on_the_pod():
    found = next_step(replace(asked(NEW, f"tried {NEW.hash} ok"), marks=WORKED.marks))
    assert (found.stage, found.startup) == (Stage.TRYING, OLD.data)


def test_what_was_tried_is_delivered_and_what_slurmctld_has_is_kept():
    found = next_step(asked(NEW, f"tried {NEW.hash} ok"))
    assert (found.stage, found.startup, found.last_known_good) == (
        Stage.DELIVERING,
        NEW.data,
        OLD.data,
    )
    assert found.marks == {CONFIG_HASH: NEW.hash}
    assert found.active == OLD.hash


def test_what_the_trial_refuses_never_gets_to_where_slurmctld_reads():
    found = next_step(asked(BAD, f"tried {BAD.hash} refused: error: BogusKey"))
    assert (found.stage, found.startup, found.words) == (
        Stage.REJECTED,
        OLD.data,
        "error: BogusKey",
    )
    assert found.active == OLD.hash


def test_a_refusal_that_only_the_status_remembers_counts_until_another_one_is_declared():
    status = ControllerStatus(config_hash=BAD.hash, last_error="error: BogusKey")
    words = rejected_before(status, BAD.hash)
    found = next_step(replace(asked(BAD), acks=Acknowledgements(tried={BAD.hash: words})))
    assert (found.stage, found.startup, found.words) == (
        Stage.REJECTED,
        OLD.data,
        "error: BogusKey",
    )
    assert found.active == OLD.hash
    assert not rejected_before(status, NEW.hash)


def test_what_the_reconfigure_refuses_is_put_back():
    lines = (f"tried {NEW.hash} ok", f"refused {NEW.hash}: error: no")
    for real in (NEW, OLD, None):
        found = next_step(replace(asked(NEW, *lines), startup=real))
        assert (found.stage, found.startup, found.last_known_good) == (
            Stage.ROLLED_BACK,
            OLD.data,
            OLD.data,
        )
        assert found.marks[CONFIG_HASH] == OLD.hash
        assert found.words == "error: no"


def test_the_next_edit_starts_from_what_was_put_back():
    lines = (f"tried {NEW.hash} ok", f"refused {NEW.hash}: error: no")
    found = next_step(replace(asked(REMARK, *lines), startup=NEW))
    assert (found.stage, found.startup) == (Stage.TRYING, OLD.data)


def test_a_file_of_the_users_own_that_is_refused_cannot_be_put_back():
    wanted = replace(OLD, hash="other-files")
    found = next_step(asked(wanted, f"refused {wanted.hash}: error: gres.conf"))
    assert (found.stage, found.startup) == (Stage.ROLLED_BACK, OLD.data)


def test_it_is_in_effect_when_slurmctlds_pod_says_so():
    view = replace(asked(NEW, f"tried {NEW.hash} ok"), startup=NEW)
    handed = replace(view, marks={**(view.marks or {}), CONFIG_HASH: NEW.hash})
    assert next_step(view).stage is Stage.DELIVERING
    assert next_step(handed).stage is Stage.DELIVERING
    done = asked(NEW, f"effective {NEW.hash}", view=handed)
    assert next_step(replace(done, marks=view.marks)).stage is Stage.DELIVERING
    found = next_step(done)
    assert (found.stage, found.last_known_good, found.active) == (
        Stage.EFFECTIVE,
        NEW.data,
        NEW.hash,
    )
    assert next_step(replace(done, is_ready=False)).stage is Stage.DELIVERING


def test_what_slurmctld_is_about_to_read_is_not_told_as_in_effect():
    view = replace(asked(NEW, f"effective {NEW.hash}"), startup=NEW, is_ready=False)
    view = replace(view, marks={**(view.marks or {}), CONFIG_HASH: NEW.hash})
    found = next_step(view)
    assert (found.stage, found.active) == (Stage.DELIVERING, OLD.hash)
    again = next_step(replace(view, active=found.active))
    assert again.stage is Stage.DELIVERING, "what was told became the proof of itself"


@pytest.mark.parametrize("alias", [OLD, None])
def test_an_edit_by_somebody_else_is_not_taken_for_what_worked(alias: Version | None):
    found = next_step(
        replace(asked(BAD, f"tried {BAD.hash} refused: no"), startup=None, last_known_good=alias)
    )
    assert found.startup == (OLD.data if alias else None)
    healed = next_step(
        replace(WORKED, startup=None, last_known_good=alias, acks=Acknowledgements(active=OLD.hash))
    )
    assert healed.startup in (OLD.data, None)


@pytest.mark.parametrize(
    ("view", "stage"),
    [
        (replace(WORKED, candidate=NEW, has_started=False, is_ready=False), Stage.STARTING),
        (replace(WORKED, candidate=NEW, has_own_sidecar=False), Stage.EFFECTIVE),
        (replace(WORKED, candidate=NEW, has_own_sidecar=False, is_ready=False), Stage.STARTING),
    ],
)
def test_without_anybody_to_try_it_goes_straight(view: ConfigView, stage: Stage):
    found = next_step(view)
    assert (found.stage, found.startup) == (stage, NEW.data)
    assert found.marks == {CONFIG_HASH: NEW.hash}
    assert not (found.stage is Stage.EFFECTIVE and found.is_acknowledged)
    assert not found.active


def test_a_first_start_is_in_effect_when_it_works_and_says_so():
    view = replace(WORKED, has_started=False, active="", acks=Acknowledgements(active=OLD.hash))
    assert next_step(view).stage is Stage.EFFECTIVE
    assert next_step(replace(view, is_ready=False)).stage is Stage.STARTING
    assert next_step(replace(view, acks=None, why="no log")).words == "no log"


def test_a_slurmctld_that_serves_gets_nothing_untried_before_it_was_heard_for_the_first_time():
    view = replace(
        WORKED, has_started=False, active="", last_known_good=None, acks=None, why="no log"
    )
    found = next_step(replace(view, candidate=NEW))
    assert (found.stage, found.startup, found.last_known_good) == (Stage.TRYING, OLD.data, None)


def test_what_needs_nothing_of_slurmctld_is_marked_so():
    marks = next_step(replace(WORKED, candidate=REMARK)).marks
    assert marks[CONFIG_LIVE] == REMARK.hash
    assert next_step(replace(WORKED, candidate=NEW)).marks[CONFIG_LIVE] == ""
    # The user's own files have changed as well, or slurmctld is not known to have the former ones.
    assert next_step(replace(WORKED, candidate=REMARK, active="other")).marks[CONFIG_LIVE] == ""
    assert (
        next_step(replace(WORKED, candidate=REMARK, last_known_good=NEW)).marks[CONFIG_LIVE] == ""
    )


def test_partitions_are_reconfigured_unless_they_are_live_already():
    view = replace(WORKED, candidate=PARTITION)
    assert next_step(view).plan.force is Force.REST
    assert next_step(view).marks[CONFIG_LIVE] == ""
    assert next_step(replace(view, applied_live=True)).marks[CONFIG_LIVE] == PARTITION.hash


def test_a_restart_is_marked_beforehand_and_done_once():
    trying = next_step(replace(WORKED, candidate=PORT))
    assert (trying.marks[CONFIG_RESTART], trying.marks[CONFIG_LIVE]) == (PORT.hash, "")
    assert next_step(there(PORT, f"pending {PORT.hash}")).restart
    again = replace(there(PORT, f"effective {PORT.hash}"), marks={CONFIG_HASH: PORT.hash})
    assert next_step(again).stage is Stage.EFFECTIVE
    assert not next_step(there(NEW, f"effective {NEW.hash}", mark=PORT)).restart


def there(version: Version, *lines: str, mark: Version | None = None) -> ConfigView:
    """The real files are these, and slurmctld's pod was marked to be restarted for them."""
    marks = {CONFIG_HASH: version.hash, CONFIG_RESTART: (mark or version).hash}
    return asked(version, *lines, view=replace(WORKED, startup=version, marks=marks))


def test_a_restart_that_is_to_come_moves_neither_the_active_configuration_nor_the_last_good_one():
    for lines in ((), (f"pending {PORT.hash}",), (f"effective {PORT.hash}",)):
        found = next_step(there(PORT, *lines))
        assert (found.startup, found.last_known_good, found.active) == (
            PORT.data,
            OLD.data,
            OLD.hash,
        )
        assert found.stage in {Stage.DELIVERING, Stage.RESTARTING}


RETURNS = replace(
    there(PORT, f"effective {PORT.hash}"), marks={CONFIG_HASH: PORT.hash}, is_ready=False
)
"""A new pod has the files that need a restart, and its slurmctld is not up yet."""


def test_a_slurmctld_that_restarts_has_its_configuration_once_it_serves():
    found = next_step(replace(RETURNS, starting="no Kubernetes node"))
    assert (found.stage, found.words) == (Stage.RETURNING, "no Kubernetes node")
    assert (found.startup, found.last_known_good, found.active) == (PORT.data, OLD.data, OLD.hash)
    found = next_step(replace(RETURNS, is_ready=True))
    assert (found.stage, found.last_known_good, found.active) == (
        Stage.EFFECTIVE,
        PORT.data,
        PORT.hash,
    )


def test_a_slurmctld_that_does_not_come_up_gets_the_last_good_files_back_with_its_words():
    found = next_step(replace(RETURNS, down="fatal: Permission denied"))
    assert (found.stage, found.startup, found.last_known_good) == (
        Stage.ROLLED_BACK,
        OLD.data,
        OLD.data,
    )
    assert (found.active, found.marks[CONFIG_HASH]) == (OLD.hash, OLD.hash)
    assert found.words.endswith("fatal: Permission denied")
    assert found.rejected == {PORT.hash: found.words}
    assert found.recreate


def test_a_process_that_starts_after_the_verdict_was_written_neither_forgets_nor_repeats_it():
    back = next_step(replace(RETURNS, down="fatal: no"))
    view = replace(RETURNS, startup=OLD, rejected=back.rejected)
    assert next_step(view).recreate, "the pod still has what was refused"
    new = asked(PORT, f"tried {PORT.hash} ok", view=replace(WORKED, marks={}))
    found = next_step(replace(new, rejected=back.rejected))
    assert (found.stage, found.startup, found.words) == (Stage.ROLLED_BACK, OLD.data, back.words)
    assert found.rejected == back.rejected
    assert not found.recreate


def test_a_silent_slurmctld_older_than_its_files_gets_a_new_pod_and_no_file_is_blamed():
    view = replace(RETURNS, hung="it was silent")
    found = next_step(view)
    assert (found.recreate, found.startup, found.rejected) == ("it was silent", PORT.data, {})
    assert not next_step(replace(view, persistent=False)).recreate, (
        "its state would go with the pod"
    )
    assert not next_step(replace(view, is_adopted=True)).recreate, "another operator made the pod"


def test_a_verdict_is_kept_until_something_else_that_is_declared_is_in_effect():
    refused = {PORT.hash: "no"}
    assert next_step(replace(WORKED, rejected=refused)).rejected == {}
    assert next_step(replace(WORKED, rejected=refused, is_complete=False)).rejected == refused
    assert next_step(replace(asked(NEW), rejected=refused)).rejected == refused


def test_a_partition_that_changes_meanwhile_does_not_start_the_refused_lines_once_more():
    old, new = replace(OLD, own="a"), replace(PORT, own="b")
    back = next_step(
        replace(RETURNS, candidate=new, startup=new, last_known_good=old, down="fatal: no")
    )
    assert set(back.rejected) == {PORT.hash, "b"}
    more = Version({"slurm.conf": PORT.data["slurm.conf"] + "PartitionName=p\n"}, "other", "b")
    view = replace(
        asked(more, "tried other ok"), startup=old, last_known_good=old, rejected=back.rejected
    )
    assert (next_step(view).stage, next_step(view).startup) == (Stage.ROLLED_BACK, OLD.data)
    # A partition is to blame where the Controller's lines are the same.
    new = replace(PARTITION, own="a")
    marks = {CONFIG_HASH: new.hash}
    view = replace(
        RETURNS, candidate=new, startup=new, last_known_good=old, down="fatal: no", marks=marks
    )
    assert set(next_step(view).rejected) == {PARTITION.hash}
    assert next_step(view).startup == OLD.data


def test_a_correction_during_the_crash_goes_on_from_the_last_good_files():
    marks = {CONFIG_HASH: PORT.hash, CONFIG_CANDIDATE: NEW.hash}
    view = replace(RETURNS, candidate=NEW, down="fatal: no", marks=marks)
    found = next_step(view)
    assert (found.stage, found.startup, found.last_known_good) == (Stage.TRYING, OLD.data, OLD.data)
    assert found.recreate
    assert next_step(replace(view, candidate=OLD)).startup == OLD.data
    tried = replace(view, acks=Acknowledgements(tried={NEW.hash: None}))
    assert (next_step(tried).startup, next_step(tried).last_known_good) == (NEW.data, OLD.data)


def test_an_edit_during_the_restart_does_not_take_back_what_may_come_up():
    found = next_step(replace(RETURNS, candidate=NEW))
    assert (found.stage, found.startup, found.last_known_good) == (
        Stage.TRYING,
        PORT.data,
        OLD.data,
    )
    assert found.active == OLD.hash, "it has not served with the other one"


def test_a_revert_during_the_restart_restarts_once_more_as_nobody_could_ask_the_other_port():
    found = next_step(replace(RETURNS, candidate=OLD))
    assert found.marks[CONFIG_RESTART] == OLD.hash
    # What the container never saw it does not call pending.
    seen = there(OLD, f"effective {OLD.hash}")
    assert next_step(seen).restart


@pytest.mark.parametrize("alias", [None, PORT])
def test_without_a_last_good_configuration_the_file_stays_and_is_told(alias: Version | None):
    view = replace(RETURNS, last_known_good=alias, down="fatal: no", active="")
    found = next_step(view)
    assert (found.stage, found.startup) == (Stage.ROLLED_BACK, PORT.data)
    assert "no earlier files" in found.words
    assert not found.recreate, "a new pod would have the same files"
    assert found.last_known_good == (alias.data if alias else None)
    corrected = replace(asked(NEW, f"tried {NEW.hash} ok", view=view), is_ready=False)
    assert next_step(corrected).startup == NEW.data


def test_an_alias_that_is_missing_is_made_of_nothing_that_has_not_served():
    assert next_step(replace(RETURNS, last_known_good=None)).last_known_good is None
    assert next_step(replace(asked(NEW), last_known_good=None)).last_known_good == OLD.data
    assert (
        next_step(replace(asked(NEW), startup=PORT, last_known_good=None)).last_known_good is None
    )
    assert (
        next_step(replace(RETURNS, last_known_good=None, is_ready=True)).last_known_good
        == PORT.data
    )


def test_a_crash_with_the_configuration_that_it_served_with_is_no_verdict_on_it():
    found = next_step(
        replace(WORKED, is_ready=False, down="error: disk full", acks=Acknowledgements())
    )
    assert (found.startup, found.last_known_good, found.rejected) == (OLD.data, OLD.data, {})
    assert found.stage is not Stage.ROLLED_BACK


def test_a_first_start_that_ends_on_its_files_is_told_and_corrected():
    view = replace(RETURNS, has_started=False, last_known_good=None, active="", down="fatal: no")
    found = next_step(view)
    assert (found.stage, found.needs_correction, found.words) == (Stage.STARTING, True, "fatal: no")
    assert (found.last_known_good, found.active) == (None, "")
    assert next_step(replace(view, candidate=OLD)).startup == OLD.data


def test_with_its_state_in_its_pod_slurmctld_gets_its_files_back_and_keeps_the_pod():
    found = next_step(replace(RETURNS, down="fatal: no", persistent=False))
    assert (found.startup, found.recreate, found.restart) == (OLD.data, "", False)


def test_a_port_at_which_nobody_finds_slurmctld_is_refused_without_a_trial():
    found = next_step(replace(WORKED, candidate=PORT, unfit="SlurmctldPort=7000 is no good"))
    assert (found.stage, found.startup, found.words) == (
        Stage.REJECTED,
        OLD.data,
        "SlurmctldPort=7000 is no good",
    )


def test_a_trial_without_a_verdict_is_neither_taken_nor_refused_and_its_reason_is_told():
    found = next_step(asked(NEW, f"untried {NEW.hash}: slurmctld had not started after 15 s"))
    assert (found.stage, found.startup) == (Stage.TRYING, OLD.data)
    assert "had not started after 15 s" in found.words


def test_slurmctld_is_not_restarted_where_its_pod_has_the_state():
    marks = next_step(replace(WORKED, candidate=PORT, persistent=False)).marks
    assert marks[CONFIG_RESTART] == marks[CONFIG_LIVE] == ""


COMING = replace(
    WORKED,
    candidate=NEW,
    startup=PARTITION,
    acks=Acknowledgements(active=OLD.hash),
    marks={CONFIG_HASH: PARTITION.hash, CONFIG_LIVE: PARTITION.hash},
)
"""A file that slurmctld need not read is on its way, when another change is declared."""


def test_what_slurmctld_has_already_arrives_before_the_next_change_is_handed_over():
    found = next_step(COMING)
    assert (found.stage, found.startup, found.last_known_good) == (
        Stage.DELIVERING,
        PARTITION.data,
        OLD.data,
    )
    assert CONFIG_LIVE not in found.marks, "slurmctld would read it for nothing"
    unmarked = replace(COMING, marks={CONFIG_HASH: OLD.hash, CONFIG_LIVE: PARTITION.hash})
    assert next_step(unmarked).marks[CONFIG_HASH] == PARTITION.hash
    there = replace(COMING, acks=Acknowledgements(active=PARTITION.hash))
    assert next_step(there).stage is Stage.TRYING
    assert next_step(replace(there, candidate=REMARK)).plan.force is not Force.NOTHING


@pytest.mark.parametrize(
    "view",
    [
        replace(COMING, acks=None),
        replace(COMING, is_ready=False),
        replace(COMING, acks=Acknowledgements(active=OLD.hash, blocked_by="no answer")),
        replace(COMING, acks=Acknowledgements(active=OLD.hash, rejected={PARTITION.hash: "no"})),
        replace(COMING, marks={CONFIG_HASH: PARTITION.hash}),
        replace(COMING, marks=None),
    ],
)
def test_a_change_waits_for_nothing_that_may_never_arrive(view: ConfigView):
    assert next_step(view).stage is Stage.TRYING


def test_slurmctld_reads_from_the_handing_over_until_it_says_that_it_has():
    assert not next_step(WORKED).reloads
    assert not next_step(asked(NEW)).reloads
    handing = asked(NEW, f"tried {NEW.hash} ok")
    assert next_step(handing).reloads
    marks = {**(handing.marks or {}), CONFIG_HASH: NEW.hash}
    reading = replace(handing, startup=NEW, marks=marks)
    assert next_step(reading).reloads
    assert next_step(replace(reading, candidate=REMARK)).reloads, (
        "it goes on, whatever is declared next"
    )
    assert not next_step(asked(NEW, f"effective {NEW.hash}", view=reading)).reloads
    assert not next_step(asked(NEW, f"refused {NEW.hash}: no", view=reading)).reloads
    assert not next_step(COMING).reloads, "it has that already"


@dataclass
class Site:
    """ConfigMaps, pod, container and status, with an operator that may die after any write."""

    wanted: Version
    refused: frozenset[str] = frozenset()
    at_reconfigure: frozenset[str] = frozenset()
    real: Version = OLD
    alias: Version = OLD
    effective: str = OLD.hash
    marks: dict[str, str] = field(default_factory=lambda: {CONFIG_HASH: OLD.hash})
    log: list[str] = field(default_factory=lambda: [f"penstock: effective {OLD.hash}"])
    seen: list[Version] = field(default_factory=lambda: [OLD])
    versions: Mapping[str, Version] = field(default_factory=dict[str, Version])

    def view(self) -> ConfigView:
        acks = read("\n".join(self.log))
        parts = {
            "candidate": self.wanted,
            "startup": self.real,
            "last_known_good": self.alias,
            "acks": acks,
        }
        return replace(WORKED, active=self.effective, marks=dict(self.marks), **parts)

    def write(self, decision: ConfigStep, *, most: int) -> None:
        """Do so many writes of the step, as an operator does that dies then."""
        for number in range(most):
            if number == 0 and decision.startup is not None:
                self.real = version(decision.startup["slurm.conf"])
            if number == 1 and decision.last_known_good is not None:
                self.alias = version(decision.last_known_good["slurm.conf"])
            if number == 2:
                self.marks |= decision.marks
            if number == 3:
                self.effective = decision.active

    def answer(self) -> None:
        """What the container says, having seen the marks."""
        shown = self.marks.get(CONFIG_CANDIDATE)
        if shown == self.wanted.hash and f"penstock: tried {shown}" not in "\n".join(self.log):
            bad = shown in self.refused
            self.log.append(f"penstock: tried {shown} {'refused: no' if bad else 'ok'}")
        if self.marks[CONFIG_HASH] == self.real.hash != self.seen[-1].hash:
            self.seen.append(self.real)
            bad = self.real.hash in self.at_reconfigure
            verdict = f"refused {self.real.hash}: no" if bad else f"effective {self.real.hash}"
            self.log.append(f"penstock: {verdict}")


@pytest.mark.parametrize("most", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("step", range(6))
@pytest.mark.parametrize("fate", ["good", "refused", "put back"])
def test_an_operator_that_dies_after_any_write_leaves_all_to_its_successor(
    fate: str, step: int, most: int
):
    site = Site(NEW)
    if fate == "refused":
        site.refused = frozenset({NEW.hash})
    if fate == "put back":
        site.at_reconfigure = frozenset({NEW.hash})
    decision = next_step(site.view())
    for number in range(14):
        decision = next_step(site.view())
        site.write(decision, most=most if number == step else 4)
        site.answer()
        if fate == "refused":
            assert site.real == OLD
    if fate == "good":
        assert decision.stage is Stage.EFFECTIVE
        assert site.real == site.alias == NEW
        assert is_settled(site.view())
    else:
        assert decision.stage in {Stage.REJECTED, Stage.ROLLED_BACK}
        assert site.real == site.alias == OLD


@dataclass
class Restarts(Site):
    """The same where slurmctld has to restart, which is done as the operator's fifth act."""

    comes_up: bool = True
    serves: bool = True
    restarted: int = 0
    refused_: Mapping[str, str] = field(default_factory=dict[str, str])

    def view(self) -> ConfigView:
        bad = not self.comes_up and self.marks.get(CONFIG_HASH) == self.real.hash == PORT.hash
        down = "fatal: no" if bad and not self.serves else ""
        return replace(super().view(), is_ready=self.serves, down=down, rejected=self.refused_)

    def write(self, decision: ConfigStep, *, most: int) -> None:
        recreates = decision.restart or decision.recreate
        super().write(replace(decision, marks={}) if recreates else decision, most=most)
        if most > 0:
            # In one write with the real files.
            self.refused_ = decision.rejected
        if most > 4 and recreates:
            self.marks, self.log = {}, [f"penstock: effective {self.real.hash}"]
            self.seen.append(self.real)
            self.serves = self.comes_up or self.real != PORT
            self.restarted += 1

    def answer(self) -> None:
        if self.marks.get(CONFIG_RESTART) == self.marks.get(CONFIG_HASH) == self.real.hash:
            self.log.append(f"penstock: pending {self.real.hash}")
            return
        if CONFIG_HASH in self.marks:
            super().answer()


@pytest.mark.parametrize("most", range(6))
@pytest.mark.parametrize("step", range(9))
@pytest.mark.parametrize("comes_up", [True, False])
def test_an_operator_that_dies_during_a_restart_leaves_all_to_its_successor(
    comes_up: bool, step: int, most: int
):
    site = Restarts(PORT, comes_up=comes_up)
    decision = next_step(site.view())
    for number in range(18):
        decision = next_step(site.view())
        site.write(decision, most=most if number == step else 5)
        site.answer()
        assert site.alias == OLD or site.serves
        assert site.effective == OLD.hash or comes_up
    if comes_up:
        assert decision.stage is Stage.EFFECTIVE
        assert site.real == site.alias == PORT
        assert site.restarted == 1
    else:
        assert (decision.stage, decision.words[-9:]) == (Stage.ROLLED_BACK, "fatal: no")
        assert site.real == site.alias == OLD
        assert site.serves
        assert site.restarted == 2, "once for the new files, and once for those of before"


UNSAVED = replace(
    WORKED,
    candidate=PARTITION,
    marks={CONFIG_HASH: OLD.hash, TRIES_CONFIG: "1"},
    acks=Acknowledgements(active=OLD.hash),
    applied_live=True,
    has_unsaved=True,
)
"""slurmctld has a partition by a REST call, and its file is tried."""


def test_partitions_are_unsaved_until_slurmctlds_folder_has_their_file():
    assert next_step(UNSAVED).is_unsaved
    written = replace(
        UNSAVED, startup=PARTITION, marks=dict(UNSAVED.marks or {}) | {CONFIG_HASH: PARTITION.hash}
    )
    written = replace(written, has_unsaved=False)
    assert next_step(written).stage is Stage.DELIVERING
    assert next_step(written).is_unsaved
    found = next_step(replace(written, acks=Acknowledgements(active=PARTITION.hash)))
    assert (found.stage, found.is_unsaved) == (Stage.EFFECTIVE, False)


@pytest.mark.parametrize(
    "view",
    [
        replace(UNSAVED, is_ready=False),
        replace(UNSAVED, marks=None),
        replace(UNSAVED, marks={CONFIG_HASH: OLD.hash}),
        replace(UNSAVED, is_adopted=True),
        replace(UNSAVED, candidate=NEW, has_unsaved=False, applied_live=False),
        replace(asked(BAD, f"tried {BAD.hash} refused: no", view=UNSAVED), has_unsaved=True),
    ],
    ids=["does not serve", "no pod", "older pod", "adopted", "another key", "rejected"],
)
def test_a_restart_does_not_wait_where_no_file_is_on_its_way(view: ConfigView):
    assert not next_step(view).is_unsaved
