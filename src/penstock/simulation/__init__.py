"""Stand-ins and fault injectors for tests, of Penstock's own and of whoever builds on it."""
