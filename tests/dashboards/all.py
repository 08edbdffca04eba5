"""All dashboards, in the order of their list."""

from __future__ import annotations

from typing import Final

from dashboards.accounting import ACCOUNTING
from dashboards.checks import CHECKS
from dashboards.cluster import CLUSTER
from dashboards.jobs import JOBS
from dashboards.operator import OPERATOR
from dashboards.workers import WORKERS

DASHBOARDS: Final = (CLUSTER, JOBS, WORKERS, CHECKS, ACCOUNTING, OPERATOR)
