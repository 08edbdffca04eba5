/*
 * The line in plugstack.conf:
 * "required chroot.so ROOT [pid_namespace=on|off] [job_isolation=on|off] [job_mounts=FILE]
 * [network_interfaces=NAME[,NAME...]]".
 */
#ifndef CHROOT_ARGUMENTS_H
#define CHROOT_ARGUMENTS_H

#include <stdbool.h>

#include "failure.h"

enum { MOST_INTERFACES = 8, LONGEST_INTERFACE = 15 }; /* the kernel's IFNAMSIZ has the final 0 too */

struct arguments {
    char root[PATH_MAX]; /* absolute path of the root that steps enter */
    bool pid_namespace;  /* each step has a PID namespace; default on */
    bool job_isolation;  /* each job has temporary files and shared memory of its own; default off */
    char job_mounts[PATH_MAX]; /* file that lists mounts for each job */
    bool needs_job_mounts;     /* plugstack.conf names the file, so it must exist */
    /* names with commas, for variables of steps; default none */
    char network_interfaces[MOST_INTERFACES * (LONGEST_INTERFACE + 1)];
};

/* Returns 0, or -1 with the reason. */
int arguments_parse(struct arguments *arguments, int count, char *const words[],
                    struct failure *failure);

#endif
