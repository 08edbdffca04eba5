/* The first failure of a step, as a text for the user: "call(path): reason". */
#ifndef CHROOT_FAILURE_H
#define CHROOT_FAILURE_H

#include <limits.h>

struct failure {
    char text[PATH_MAX + 256]; /* empty: no failure */
};

/* Keep the failure of a system call; a later one does not replace it. Returns -1. */
int failure_of_call(struct failure *failure, const char *call, const char *path, int error);

/* Keep a failure without an errno. Returns -1. */
int failure_of(struct failure *failure, const char *reason, const char *subject);

#endif
