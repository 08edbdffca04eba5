"""What is seen to what must be done: pure functions over frozen snapshots, one policy per file."""
