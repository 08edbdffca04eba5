"""Decisions about slurmdbd and the records that it keeps."""
