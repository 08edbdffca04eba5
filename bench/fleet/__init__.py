"""Thousands of simulated workers: real etcd, API server and operator; KWOK for the machines.

What is not real: kubelets and machines (KWOK says that pods run), and Slurm (`fleet.slurm` answers
slurmrestd's requests over HTTP; a node registers when its pod becomes Ready).
"""
