"""Check of the project's wording, which `make lint` runs: terms to avoid and long sentences."""
