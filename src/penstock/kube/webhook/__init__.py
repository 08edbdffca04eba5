"""The server of admission webhooks and its certificates."""
