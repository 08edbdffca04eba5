"""Fault plans: the whole operator in a simulated world that does its worst, again and again.

    python -m penstock.testing.plans --seed 1 --count 1000

A plan is made from its seed alone: what users do and what goes wrong, and when. It is played in
simulated time against the simulated API server, machines and Slurm of `penstock.testing`, and the
promises are checked at each step.
"""
