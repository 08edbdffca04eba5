"""Logs of a process of ours: one line of JSON for each event, on standard output."""

from __future__ import annotations

import logging

import structlog


def write_json_logs(level: str) -> None:
    """Have structlog write events from this level on, such as `info`."""
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso"),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(
            logging.getLevelNamesMapping()[level.upper()]
        ),
        cache_logger_on_first_use=True,
    )
