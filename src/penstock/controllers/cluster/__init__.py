"""What is observed of a cluster beside its configuration and its workers."""
