"""Server-side apply, and who owns a field."""
