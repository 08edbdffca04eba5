"""cgroup.conf, for clusters whose users give none of their own. Source: cgroup.conf(5)."""

from __future__ import annotations

CGROUP_CONF = "CgroupPlugin=cgroup/v2\nIgnoreSystemd=yes\n"
"""Pods have no systemd to ask for a scope; which resources to constrain is the user's choice."""
