/*
 * The line in plugstack.conf:
 * "required chroot.so ROOT [pid_namespace=on|off] [job_isolation=on|off] [job_mounts=FILE]".
 */
#ifndef CHROOT_ARGUMENTS_H
#define CHROOT_ARGUMENTS_H

#include <stdbool.h>

#include "failure.h"

struct arguments {
    char root[PATH_MAX]; /* absolute path of the root that steps enter */
    bool pid_namespace;  /* each step has a PID namespace; default on */
    bool job_isolation;  /* each job has temporary files and shared memory of its own; default off */
    char job_mounts[PATH_MAX]; /* file that lists mounts for each job */
    bool needs_job_mounts;     /* plugstack.conf names the file, so it must exist */
};

/* Returns 0, or -1 with the reason. */
int arguments_parse(struct arguments *arguments, int count, char *const words[],
                    struct failure *failure);

#endif
