"""What the bench of changed keys takes for a cluster at rest."""

from __future__ import annotations

import pytest

from bench.config.rest import at_rest

SDIAG = """\
*******************************************************
sdiag output at Sun Nov 22 07:34:32 2026 (1795332872)
Data since      Sun Nov 22 07:34:08 2026 ({since})
*******************************************************
Server thread count:  1
RPC queue enabled:    0
Agent queue size:     {queue}
Agent count:          {agents}
Agent thread count:   0
DBD Agent queue size: 0

Jobs submitted: 0

Job states ts:  Sun Nov 22 07:34:08 2026 (1795332848)
"""
"""As slurmctld 26.05 was seen to answer."""


@pytest.mark.parametrize(
    ("since", "queue", "agents", "rests"),
    [
        pytest.param(1795332848, 0, 0, True, id="started-long-ago-and-idle"),
        pytest.param(1795332848, 0, 2, False, id="agents-wait-for-nodes"),
        pytest.param(1795332848, 1, 0, False, id="messages-wait-for-agents"),
        pytest.param(1795332869, 0, 0, False, id="it-has-not-asked-its-nodes-yet"),
        pytest.param(0, 0, 0, False, id="it-has-started-within-this-second"),
    ],
)
def test_slurmctld_rests_when_it_has_started_and_no_agent_is_at_work(
    since: int, queue: int, agents: int, rests: bool
):
    assert at_rest(SDIAG.format(since=since, queue=queue, agents=agents)) is rests


def test_an_answer_without_times_is_no_rest():
    assert not at_rest("sdiag: error: something else\n")
