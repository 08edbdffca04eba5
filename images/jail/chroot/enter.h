/* Mounts of a step. Each function returns 0, or -1 with the reason. */
#ifndef CHROOT_ENTER_H
#define CHROOT_ENTER_H

#include <sys/types.h>

#include "failure.h"
#include "job_mounts.h"

struct root {
    dev_t device; /* of the root that was entered */
    ino_t inode;
    int old_namespace; /* descriptors of the old root, until it is returned to or forgotten */
    int old_root;
};

/* Give the calling thread a mount namespace with `path` as its root, and the mounts of the job. */
int enter_root(const char *path, struct root *root, struct job_mounts *mounts,
               const struct job *job, struct failure *failure);

/* After a failure: back to the old root, where slurmstepd finds its files to end the step. */
int return_from_root(struct root *root, struct failure *failure);

/* After success: no way back. */
int forget_old_root(struct root *root, struct failure *failure);

/* Fail unless the caller's root is `root`: another plug-in may have moved a task. */
int check_root(const struct root *root, struct failure *failure);

/* Change the effective uid of the calling thread alone; its real uid is 0. */
int set_effective_uid(uid_t uid, struct failure *failure);

/* Mount /proc of the caller's PID namespace on /proc. */
int mount_proc(struct failure *failure);

/* Make those files of /proc and /sys read-only by which uid 0 configures the kernel. */
int protect_kernel(struct failure *failure);

/* The same for one task, in a mount namespace of its own; the effective uid may be a user's. */
int protect_tasks(struct failure *failure);

#endif
