/* The PID namespace of a step, and its first process. */
#ifndef CHROOT_REAPER_H
#define CHROOT_REAPER_H

#include <sys/types.h>

#include "enter.h"
#include "failure.h"

/*
 * PID 1 of the namespace also owns the mount namespace of the tasks, whose /proc shows the PID
 * namespace. slurmstepd keeps its own /proc: it finds and signals tasks by their outer numbers.
 */
struct reaper {
    pid_t pid; /* 0: none */
    int fd;    /* pidfd of the reaper */
    int self;  /* pidfd of slurmstepd */
};

/* Start the reaper of a new PID namespace in `root`. Returns 0, or -1 with the reason. */
int reaper_start(struct reaper *reaper, const struct root *root, struct failure *failure);

/*
 * Children that the calling thread forks from now on are in the namespace. This call and the next
 * two work with the effective uid of a user when the real one is 0, as when tasks are forked.
 */
int reaper_enter(const struct reaper *reaper, struct failure *failure);

/* Children are in the thread's own PID namespace again. */
int reaper_leave(const struct reaper *reaper, struct failure *failure);

/* In a child of the namespace: enter the mount namespace of the tasks, keep the working folder. */
int reaper_join(const struct reaper *reaper, struct failure *failure);

/* Kill the reaper, and with it all that is left in the namespace. */
int reaper_stop(struct reaper *reaper, struct failure *failure);

#endif
