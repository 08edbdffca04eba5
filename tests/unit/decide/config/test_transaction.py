"""The next step of a changed configuration: every state, and after a crash behind each write."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pytest

from penstock.api.cluster.marks import CONFIG_CANDIDATE, CONFIG_HASH, CONFIG_LIVE, CONFIG_RESTART
from penstock.api.slinky.controller import ControllerStatus
from penstock.controllers.config.transaction import refused_before
from penstock.decide.config.acknowledgement import Acks, read
from penstock.decide.config.transaction import ConfigView, Decision, Stage, Version, decide, settled
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
    wanted=OLD,
    real=OLD,
    alias=OLD,
    worked=True,
    serves=True,
    speaks=True,
    effective=OLD.hash,
    marks={CONFIG_HASH: OLD.hash},
)


def asked(wanted: Version, *lines: str, view: ConfigView = WORKED) -> ConfigView:
    """The candidates were shown, and this was said of them."""
    marks = {**(view.marks or {}), CONFIG_CANDIDATE: wanted.hash}
    acks = read("".join(f"penstock: {line}\n" for line in (f"effective {OLD.hash}", *lines)))
    return replace(view, wanted=wanted, marks=marks, acks=acks)


def test_a_cluster_at_rest_needs_nobody_to_be_asked():
    assert settled(WORKED)
    found = decide(WORKED)
    assert (found.stage, found.real, found.alias) == (Stage.EFFECTIVE, OLD.data, OLD.data)
    assert not settled(replace(WORKED, wanted=NEW))
    assert not settled(replace(WORKED, real=None))


def test_a_changed_file_is_shown_to_the_trial_start_and_to_nobody_else():
    found = decide(replace(WORKED, wanted=NEW, acks=Acks(effective=OLD.hash)))
    assert (found.stage, found.real, found.alias) == (Stage.TRYING, OLD.data, OLD.data)
    assert found.marks[CONFIG_CANDIDATE] == NEW.hash
    assert found.marks[CONFIG_HASH] == OLD.hash


@pytest.mark.parametrize("acks", [None, Acks(), Acks(tried={BAD.hash: None})])
def test_not_knowing_is_no_yes(acks: Acks | None):
    found = decide(replace(asked(NEW), acks=acks, why="nobody answers"))
    assert (found.stage, found.real) == (Stage.TRYING, OLD.data)


def test_a_verdict_counts_only_once_the_marks_that_go_with_it_are_on_the_pod():
    found = decide(replace(asked(NEW, f"tried {NEW.hash} ok"), marks=WORKED.marks))
    assert (found.stage, found.real) == (Stage.TRYING, OLD.data)


def test_what_was_tried_is_delivered_and_what_slurmctld_has_is_kept():
    found = decide(asked(NEW, f"tried {NEW.hash} ok"))
    assert (found.stage, found.real, found.alias) == (Stage.DELIVERING, NEW.data, OLD.data)
    assert found.marks == {CONFIG_HASH: NEW.hash}
    assert found.effective == OLD.hash


def test_what_the_trial_refuses_never_gets_to_where_slurmctld_reads():
    found = decide(asked(BAD, f"tried {BAD.hash} refused: error: BogusKey"))
    assert (found.stage, found.real, found.words) == (Stage.REFUSED, OLD.data, "error: BogusKey")
    assert found.effective == OLD.hash


def test_a_refusal_that_only_the_status_remembers_counts_until_another_one_is_declared():
    status = ControllerStatus(config_hash=BAD.hash, last_error="error: BogusKey")
    words = refused_before(status, BAD.hash)
    found = decide(replace(asked(BAD), acks=Acks(tried={BAD.hash: words})))
    assert (found.stage, found.real, found.words) == (Stage.REFUSED, OLD.data, "error: BogusKey")
    assert found.effective == OLD.hash
    assert not refused_before(status, NEW.hash)


def test_what_the_reconfigure_refuses_is_put_back():
    lines = (f"tried {NEW.hash} ok", f"refused {NEW.hash}: error: no")
    for real in (NEW, OLD, None):
        found = decide(replace(asked(NEW, *lines), real=real))
        assert (found.stage, found.real, found.alias) == (Stage.UNDONE, OLD.data, OLD.data)
        assert found.marks[CONFIG_HASH] == OLD.hash
        assert found.words == "error: no"


def test_the_next_edit_starts_from_what_was_put_back():
    lines = (f"tried {NEW.hash} ok", f"refused {NEW.hash}: error: no")
    found = decide(replace(asked(REMARK, *lines), real=NEW))
    assert (found.stage, found.real) == (Stage.TRYING, OLD.data)


def test_a_file_of_the_users_own_that_is_refused_cannot_be_put_back():
    wanted = replace(OLD, hash="other-files")
    found = decide(asked(wanted, f"refused {wanted.hash}: error: gres.conf"))
    assert (found.stage, found.real) == (Stage.UNDONE, OLD.data)


def test_it_is_in_effect_when_slurmctlds_pod_says_so():
    view = replace(asked(NEW, f"tried {NEW.hash} ok"), real=NEW)
    handed = replace(view, marks={**(view.marks or {}), CONFIG_HASH: NEW.hash})
    assert decide(view).stage is Stage.DELIVERING
    assert decide(handed).stage is Stage.DELIVERING
    done = asked(NEW, f"effective {NEW.hash}", view=handed)
    assert decide(replace(done, marks=view.marks)).stage is Stage.DELIVERING
    found = decide(done)
    assert (found.stage, found.alias, found.effective) == (Stage.EFFECTIVE, NEW.data, NEW.hash)
    assert decide(replace(done, serves=False)).stage is Stage.DELIVERING


def test_what_slurmctld_is_about_to_read_is_not_told_as_in_effect():
    view = replace(asked(NEW, f"effective {NEW.hash}"), real=NEW, serves=False)
    view = replace(view, marks={**(view.marks or {}), CONFIG_HASH: NEW.hash})
    found = decide(view)
    assert (found.stage, found.effective) == (Stage.DELIVERING, OLD.hash)
    again = decide(replace(view, effective=found.effective))
    assert again.stage is Stage.DELIVERING, "what was told became the proof of itself"


@pytest.mark.parametrize("alias", [OLD, None])
def test_an_edit_by_somebody_else_is_not_taken_for_what_worked(alias: Version | None):
    found = decide(replace(asked(BAD, f"tried {BAD.hash} refused: no"), real=None, alias=alias))
    assert found.real == (OLD.data if alias else None)
    healed = decide(replace(WORKED, real=None, alias=alias, acks=Acks(effective=OLD.hash)))
    assert healed.real in (OLD.data, None)


@pytest.mark.parametrize(
    ("view", "stage"),
    [
        (replace(WORKED, wanted=NEW, worked=False, serves=False), Stage.STARTING),
        (replace(WORKED, wanted=NEW, speaks=False), Stage.EFFECTIVE),
        (replace(WORKED, wanted=NEW, speaks=False, serves=False), Stage.STARTING),
    ],
)
def test_without_anybody_to_try_it_goes_straight(view: ConfigView, stage: Stage):
    found = decide(view)
    assert (found.stage, found.real) == (stage, NEW.data)
    assert found.marks == {CONFIG_HASH: NEW.hash}
    assert not (found.stage is Stage.EFFECTIVE and found.told)
    assert not found.effective


def test_a_first_start_is_in_effect_when_it_works_and_says_so():
    view = replace(WORKED, worked=False, effective="", acks=Acks(effective=OLD.hash))
    assert decide(view).stage is Stage.EFFECTIVE
    assert decide(replace(view, serves=False)).stage is Stage.STARTING
    assert decide(replace(view, acks=None, why="no log")).words == "no log"


def test_a_slurmctld_that_serves_gets_nothing_untried_before_it_was_heard_for_the_first_time():
    view = replace(WORKED, worked=False, effective="", alias=None, acks=None, why="no log")
    found = decide(replace(view, wanted=NEW))
    assert (found.stage, found.real, found.alias) == (Stage.TRYING, OLD.data, None)


def test_what_needs_nothing_of_slurmctld_is_marked_so():
    marks = decide(replace(WORKED, wanted=REMARK)).marks
    assert marks[CONFIG_LIVE] == REMARK.hash
    assert decide(replace(WORKED, wanted=NEW)).marks[CONFIG_LIVE] == ""
    # The user's own files have changed as well, or slurmctld is not known to have the former ones.
    assert decide(replace(WORKED, wanted=REMARK, effective="other")).marks[CONFIG_LIVE] == ""
    assert decide(replace(WORKED, wanted=REMARK, alias=NEW)).marks[CONFIG_LIVE] == ""


def test_partitions_are_reconfigured_unless_they_are_live_already():
    view = replace(WORKED, wanted=PARTITION)
    assert decide(view).plan.force is Force.REST
    assert decide(view).marks[CONFIG_LIVE] == ""
    assert decide(replace(view, applied_live=True)).marks[CONFIG_LIVE] == PARTITION.hash


def test_a_restart_is_marked_beforehand_and_done_once():
    trying = decide(replace(WORKED, wanted=PORT))
    assert (trying.marks[CONFIG_RESTART], trying.marks[CONFIG_LIVE]) == (PORT.hash, "")
    assert decide(there(PORT, f"pending {PORT.hash}")).restart
    again = replace(there(PORT, f"effective {PORT.hash}"), marks={CONFIG_HASH: PORT.hash})
    assert decide(again).stage is Stage.EFFECTIVE
    assert not decide(there(NEW, f"effective {NEW.hash}", mark=PORT)).restart


def there(version: Version, *lines: str, mark: Version | None = None) -> ConfigView:
    """The real files are these, and slurmctld's pod was marked to be restarted for them."""
    marks = {CONFIG_HASH: version.hash, CONFIG_RESTART: (mark or version).hash}
    return asked(version, *lines, view=replace(WORKED, real=version, marks=marks))


def test_a_restart_that_is_to_come_moves_neither_the_active_configuration_nor_the_last_good_one():
    for lines in ((), (f"pending {PORT.hash}",), (f"effective {PORT.hash}",)):
        found = decide(there(PORT, *lines))
        assert (found.real, found.alias, found.effective) == (PORT.data, OLD.data, OLD.hash)
        assert found.stage in {Stage.DELIVERING, Stage.RESTARTING}


RETURNS = replace(
    there(PORT, f"effective {PORT.hash}"), marks={CONFIG_HASH: PORT.hash}, serves=False
)
"""A new pod has the files that need a restart, and its slurmctld is not up yet."""


def test_a_slurmctld_that_restarts_has_its_configuration_once_it_serves():
    found = decide(replace(RETURNS, starting="no Kubernetes node"))
    assert (found.stage, found.words) == (Stage.RETURNING, "no Kubernetes node")
    assert (found.real, found.alias, found.effective) == (PORT.data, OLD.data, OLD.hash)
    found = decide(replace(RETURNS, serves=True))
    assert (found.stage, found.alias, found.effective) == (Stage.EFFECTIVE, PORT.data, PORT.hash)


def test_a_slurmctld_that_does_not_come_up_gets_the_last_good_files_back_with_its_words():
    found = decide(replace(RETURNS, down="fatal: Permission denied"))
    assert (found.stage, found.real, found.alias) == (Stage.UNDONE, OLD.data, OLD.data)
    assert (found.effective, found.marks[CONFIG_HASH]) == (OLD.hash, OLD.hash)
    assert found.words.endswith("fatal: Permission denied")
    assert found.refused == {PORT.hash: found.words}
    assert found.recreate


def test_a_process_that_starts_after_the_verdict_was_written_neither_forgets_nor_repeats_it():
    back = decide(replace(RETURNS, down="fatal: no"))
    view = replace(RETURNS, real=OLD, refused=back.refused)
    assert decide(view).recreate, "the pod still has what was refused"
    new = asked(PORT, f"tried {PORT.hash} ok", view=replace(WORKED, marks={}))
    found = decide(replace(new, refused=back.refused))
    assert (found.stage, found.real, found.words) == (Stage.UNDONE, OLD.data, back.words)
    assert found.refused == back.refused
    assert not found.recreate


def test_a_silent_slurmctld_older_than_its_files_gets_a_new_pod_and_no_file_is_blamed():
    view = replace(RETURNS, hung="it was silent")
    found = decide(view)
    assert (found.recreate, found.real, found.refused) == ("it was silent", PORT.data, {})
    assert not decide(replace(view, persistent=False)).recreate, "its state would go with the pod"
    assert not decide(replace(view, held=True)).recreate, "another operator made the pod"


def test_a_verdict_is_kept_until_something_else_that_is_declared_is_in_effect():
    refused = {PORT.hash: "no"}
    assert decide(replace(WORKED, refused=refused)).refused == {}
    assert decide(replace(WORKED, refused=refused, whole=False)).refused == refused
    assert decide(replace(asked(NEW), refused=refused)).refused == refused


def test_a_partition_that_changes_meanwhile_does_not_start_the_refused_lines_once_more():
    old, new = replace(OLD, own="a"), replace(PORT, own="b")
    back = decide(replace(RETURNS, wanted=new, real=new, alias=old, down="fatal: no"))
    assert set(back.refused) == {PORT.hash, "b"}
    more = Version({"slurm.conf": PORT.data["slurm.conf"] + "PartitionName=p\n"}, "other", "b")
    view = replace(asked(more, "tried other ok"), real=old, alias=old, refused=back.refused)
    assert (decide(view).stage, decide(view).real) == (Stage.UNDONE, OLD.data)
    # A partition is to blame where the Controller's lines are the same.
    new = replace(PARTITION, own="a")
    marks = {CONFIG_HASH: new.hash}
    view = replace(RETURNS, wanted=new, real=new, alias=old, down="fatal: no", marks=marks)
    assert set(decide(view).refused) == {PARTITION.hash}
    assert decide(view).real == OLD.data


def test_a_correction_during_the_crash_goes_on_from_the_last_good_files():
    marks = {CONFIG_HASH: PORT.hash, CONFIG_CANDIDATE: NEW.hash}
    view = replace(RETURNS, wanted=NEW, down="fatal: no", marks=marks)
    found = decide(view)
    assert (found.stage, found.real, found.alias) == (Stage.TRYING, OLD.data, OLD.data)
    assert found.recreate
    assert decide(replace(view, wanted=OLD)).real == OLD.data
    tried = replace(view, acks=Acks(tried={NEW.hash: None}))
    assert (decide(tried).real, decide(tried).alias) == (NEW.data, OLD.data)


def test_an_edit_during_the_restart_does_not_take_back_what_may_come_up():
    found = decide(replace(RETURNS, wanted=NEW))
    assert (found.stage, found.real, found.alias) == (Stage.TRYING, PORT.data, OLD.data)
    assert found.effective == OLD.hash, "it has not served with the other one"


def test_a_revert_during_the_restart_restarts_once_more_as_nobody_could_ask_the_other_port():
    found = decide(replace(RETURNS, wanted=OLD))
    assert found.marks[CONFIG_RESTART] == OLD.hash
    # What the container never saw it does not call pending.
    seen = there(OLD, f"effective {OLD.hash}")
    assert decide(seen).restart


@pytest.mark.parametrize("alias", [None, PORT])
def test_without_a_last_good_configuration_the_file_stays_and_is_told(alias: Version | None):
    view = replace(RETURNS, alias=alias, down="fatal: no", effective="")
    found = decide(view)
    assert (found.stage, found.real) == (Stage.UNDONE, PORT.data)
    assert "no earlier files" in found.words
    assert not found.recreate, "a new pod would have the same files"
    assert found.alias == (alias.data if alias else None)
    corrected = replace(asked(NEW, f"tried {NEW.hash} ok", view=view), serves=False)
    assert decide(corrected).real == NEW.data


def test_an_alias_that_is_missing_is_made_of_nothing_that_has_not_served():
    assert decide(replace(RETURNS, alias=None)).alias is None
    assert decide(replace(asked(NEW), alias=None)).alias == OLD.data
    assert decide(replace(asked(NEW), real=PORT, alias=None)).alias is None
    assert decide(replace(RETURNS, alias=None, serves=True)).alias == PORT.data


def test_a_crash_with_the_configuration_that_it_served_with_is_no_verdict_on_it():
    found = decide(replace(WORKED, serves=False, down="error: disk full", acks=Acks()))
    assert (found.real, found.alias, found.refused) == (OLD.data, OLD.data, {})
    assert found.stage is not Stage.UNDONE


def test_a_first_start_that_ends_on_its_files_is_told_and_corrected():
    view = replace(RETURNS, worked=False, alias=None, effective="", down="fatal: no")
    found = decide(view)
    assert (found.stage, found.wrong, found.words) == (Stage.STARTING, True, "fatal: no")
    assert (found.alias, found.effective) == (None, "")
    assert decide(replace(view, wanted=OLD)).real == OLD.data


def test_with_its_state_in_its_pod_slurmctld_gets_its_files_back_and_keeps_the_pod():
    found = decide(replace(RETURNS, down="fatal: no", persistent=False))
    assert (found.real, found.recreate, found.restart) == (OLD.data, "", False)


def test_a_port_at_which_nobody_finds_slurmctld_is_refused_without_a_trial():
    found = decide(replace(WORKED, wanted=PORT, unfit="SlurmctldPort=7000 is no good"))
    assert (found.stage, found.real, found.words) == (
        Stage.REFUSED,
        OLD.data,
        "SlurmctldPort=7000 is no good",
    )


def test_a_trial_without_a_verdict_is_neither_taken_nor_refused_and_its_reason_is_told():
    found = decide(asked(NEW, f"untried {NEW.hash}: slurmctld had not started after 15 s"))
    assert (found.stage, found.real) == (Stage.TRYING, OLD.data)
    assert "had not started after 15 s" in found.words


def test_slurmctld_is_not_restarted_where_its_pod_has_the_state():
    marks = decide(replace(WORKED, wanted=PORT, persistent=False)).marks
    assert marks[CONFIG_RESTART] == marks[CONFIG_LIVE] == ""


COMING = replace(
    WORKED,
    wanted=NEW,
    real=PARTITION,
    acks=Acks(effective=OLD.hash),
    marks={CONFIG_HASH: PARTITION.hash, CONFIG_LIVE: PARTITION.hash},
)
"""A file that slurmctld need not read is on its way, when another change is declared."""


def test_what_slurmctld_has_already_arrives_before_the_next_change_is_handed_over():
    found = decide(COMING)
    assert (found.stage, found.real, found.alias) == (Stage.DELIVERING, PARTITION.data, OLD.data)
    assert CONFIG_LIVE not in found.marks, "slurmctld would read it for nothing"
    unmarked = replace(COMING, marks={CONFIG_HASH: OLD.hash, CONFIG_LIVE: PARTITION.hash})
    assert decide(unmarked).marks[CONFIG_HASH] == PARTITION.hash
    there = replace(COMING, acks=Acks(effective=PARTITION.hash))
    assert decide(there).stage is Stage.TRYING
    assert decide(replace(there, wanted=REMARK)).plan.force is not Force.NOTHING


@pytest.mark.parametrize(
    "view",
    [
        replace(COMING, acks=None),
        replace(COMING, serves=False),
        replace(COMING, acks=Acks(effective=OLD.hash, waits="no answer")),
        replace(COMING, acks=Acks(effective=OLD.hash, refused={PARTITION.hash: "no"})),
        replace(COMING, marks={CONFIG_HASH: PARTITION.hash}),
        replace(COMING, marks=None),
    ],
)
def test_a_change_waits_for_nothing_that_may_never_arrive(view: ConfigView):
    assert decide(view).stage is Stage.TRYING


def test_slurmctld_reads_from_the_handing_over_until_it_says_that_it_has():
    assert not decide(WORKED).reads
    assert not decide(asked(NEW)).reads
    handing = asked(NEW, f"tried {NEW.hash} ok")
    assert decide(handing).reads
    marks = {**(handing.marks or {}), CONFIG_HASH: NEW.hash}
    reading = replace(handing, real=NEW, marks=marks)
    assert decide(reading).reads
    assert decide(replace(reading, wanted=REMARK)).reads, "it goes on, whatever is declared next"
    assert not decide(asked(NEW, f"effective {NEW.hash}", view=reading)).reads
    assert not decide(asked(NEW, f"refused {NEW.hash}: no", view=reading)).reads
    assert not decide(COMING).reads, "it has that already"


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
        parts = {"wanted": self.wanted, "real": self.real, "alias": self.alias, "acks": acks}
        return replace(WORKED, effective=self.effective, marks=dict(self.marks), **parts)

    def write(self, decision: Decision, *, most: int) -> None:
        """Do so many writes of the step, as an operator does that dies then."""
        for number in range(most):
            if number == 0 and decision.real is not None:
                self.real = version(decision.real["slurm.conf"])
            if number == 1 and decision.alias is not None:
                self.alias = version(decision.alias["slurm.conf"])
            if number == 2:
                self.marks |= decision.marks
            if number == 3:
                self.effective = decision.effective

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
    decision = decide(site.view())
    for number in range(14):
        decision = decide(site.view())
        site.write(decision, most=most if number == step else 4)
        site.answer()
        if fate == "refused":
            assert site.real == OLD
    if fate == "good":
        assert decision.stage is Stage.EFFECTIVE
        assert site.real == site.alias == NEW
        assert settled(site.view())
    else:
        assert decision.stage in {Stage.REFUSED, Stage.UNDONE}
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
        return replace(super().view(), serves=self.serves, down=down, refused=self.refused_)

    def write(self, decision: Decision, *, most: int) -> None:
        recreates = decision.restart or decision.recreate
        super().write(replace(decision, marks={}) if recreates else decision, most=most)
        if most > 0:
            # In one write with the real files.
            self.refused_ = decision.refused
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
    decision = decide(site.view())
    for number in range(18):
        decision = decide(site.view())
        site.write(decision, most=most if number == step else 5)
        site.answer()
        assert site.alias == OLD or site.serves
        assert site.effective == OLD.hash or comes_up
    if comes_up:
        assert decision.stage is Stage.EFFECTIVE
        assert site.real == site.alias == PORT
        assert site.restarted == 1
    else:
        assert (decision.stage, decision.words[-9:]) == (Stage.UNDONE, "fatal: no")
        assert site.real == site.alias == OLD
        assert site.serves
        assert site.restarted == 2, "once for the new files, and once for those of before"
