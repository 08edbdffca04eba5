#define _GNU_SOURCE
#include "failure.h"

#include <stdio.h>
#include <string.h>

int failure_of_call(struct failure *failure, const char *call, const char *path, int error)
{
    char buffer[128];
    const char *reason = strerror_r(error, buffer, sizeof(buffer));

    if (failure->text[0] == '\0' &&
        snprintf(failure->text, sizeof(failure->text), "%s(%s): %s", call, path, reason) < 0)
        memcpy(failure->text, "snprintf", sizeof("snprintf"));
    return -1;
}

int failure_of(struct failure *failure, const char *reason, const char *subject)
{
    if (failure->text[0] == '\0' &&
        snprintf(failure->text, sizeof(failure->text), "%s: %s", reason, subject) < 0)
        memcpy(failure->text, "snprintf", sizeof("snprintf"));
    return -1;
}
