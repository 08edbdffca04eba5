"""Decisions: pure functions from a frozen snapshot to actions, one policy in each file."""
