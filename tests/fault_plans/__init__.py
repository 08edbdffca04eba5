"""Fault plans: the whole operator in a simulated world that does its worst, again and again.

    make plans SEED=1 COUNT=1000

A plan is made from its seed alone: what users do and what goes wrong, and when. It is played in
simulated time against the API server, machines and Slurm of `penstock.simulation`, and the promises
are checked at each step.
"""
