"""Revisions of a worker set: recorded, rolled back, and updated in a maintenance reservation."""
