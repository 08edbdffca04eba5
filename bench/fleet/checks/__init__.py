"""A SlurmCluster with a thousand simulated workers and all checks of the chart.

What it costs at rest, with checks and without, and when one check fails on a tenth of the nodes.
"""
