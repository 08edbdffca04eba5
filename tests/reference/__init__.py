"""Generates docs/reference from the code. `python -m reference` writes it, `--check` compares."""
