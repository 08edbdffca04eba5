"""Decisions about keys, tokens and the directory."""
