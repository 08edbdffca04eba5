#!/bin/bash
#SBATCH --ntasks=1
#SBATCH --time=00:01:00
# A job of the user of checks runs, and starts a step.
srun hostname
