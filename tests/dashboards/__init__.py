"""Dashboards and alert rules of the chart `penstock-monitoring`, as data.

`python -m dashboards` writes the files that the chart reads; `--check` compares.
"""
