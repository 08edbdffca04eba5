/* Temporary files and shared memory that only one job has: all of its steps on a node share them. */
#ifndef CHROOT_ISOLATION_H
#define CHROOT_ISOLATION_H

#include <stdbool.h>
#include <stdint.h>

#include "failure.h"
#include "job_mounts.h"

/* Before the first step: the job is isolated until its end, whatever changes. Returns 0, or -1. */
int isolation_begin(uint32_t job, struct failure *failure);

/*
 * If the job is isolated, move the calling thread to its IPC namespace, which the first step makes.
 * The caller is in slurmd's mount namespace, which keeps the namespace for later steps. Returns 0,
 * or -1.
 */
int isolation_enter_ipc(uint32_t job, bool *isolated, struct failure *failure);

/* Add the job's own /tmp, /var/tmp and /dev/shm to the mounts of its steps. Returns 0, or -1. */
int isolation_add_mounts(struct job_mounts *mounts, struct failure *failure);

/* After the last step: remove the namespace, the files and the memory. Returns 0, or -1. */
int isolation_remove(uint32_t job, struct failure *failure);

#endif
