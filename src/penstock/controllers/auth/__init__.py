"""Keys: made, rotated, rejected; and the directory that knows the users."""
