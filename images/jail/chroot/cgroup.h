/* The control group of a step's reaper. */
#ifndef CHROOT_CGROUP_H
#define CHROOT_CGROUP_H

#include <stddef.h>

#include "failure.h"

/*
 * Find the file by which a process leaves the group of a step, in the text of /proc/self/cgroup.
 * An empty result: the process is in none of cgroup v2.
 */
void cgroup_outside(const char *text, char *file, size_t size);

/*
 * Leave the group of slurmstepd. With cgroup v2 slurmstepd waits until it is alone there, and would
 * wait for UnkillableStepTimeout. Returns 0, or -1 with the reason.
 */
int cgroup_leave_step(struct failure *failure);

#endif
