"""Decisions about one worker's pod: marks, deadline, protection."""
