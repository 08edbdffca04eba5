"""The webhooks that validate and default objects."""
