"""Thousands of simulated workers: real etcd, API server and operator; KWOK for the machines.

Simulated are kubelets and Kubernetes nodes (by KWOK) and Slurm (`fleet.slurm` answers
slurmrestd's requests over HTTP; a node registers when its pod becomes Ready).
"""
