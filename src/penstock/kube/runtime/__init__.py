"""Queues, leader election, events and probes."""
