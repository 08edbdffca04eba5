"""From a changed object to the keys that it matters to: owners, members and references."""
