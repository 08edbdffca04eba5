#define _GNU_SOURCE
#include "cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *const own = "/proc/self/cgroup";

/* Cut the last name off a path if it begins so. */
static int cut(char *path, const char *beginning)
{
    char *last = strrchr(path, '/');

    if (last == NULL || strncmp(last + 1, beginning, strlen(beginning)) != 0)
        return -1;
    *last = '\0';
    return 0;
}

/*
 * cgroup/v2 has slurmstepd in SCOPE/JOB/step_N/slurm. In SCOPE/system it has each slurmstepd before
 * the step's groups are made; no job is accounted for it, and nobody waits until it is empty.
 */
void cgroup_outside(const char *text, char *file, size_t size)
{
    const char *line = strncmp(text, "0::", 3) == 0 ? text : strstr(text, "\n0::");
    char path[PATH_MAX];
    int length;

    file[0] = '\0';
    if (line == NULL)
        return;
    line = strchr(line, '/');
    if (line == NULL || strcspn(line, "\n") >= sizeof(path))
        return;
    memcpy(path, line, strcspn(line, "\n"));
    path[strcspn(line, "\n")] = '\0';
    if (cut(path, "slurm") != 0 || cut(path, "step_") != 0 || cut(path, "") != 0)
        return;
    length = snprintf(file, size, "/sys/fs/cgroup%s/system/cgroup.procs", path);
    if (length < 0 || (size_t) length >= size)
        file[0] = '\0';
}

static int read_own(char *text, size_t size, struct failure *failure)
{
    int fd = open(own, O_RDONLY | O_CLOEXEC);
    ssize_t got;

    if (fd < 0)
        return failure_of_call(failure, "open", own, errno);
    got = read(fd, text, size - 1);
    if (got < 0)
        (void) failure_of_call(failure, "read", own, errno);
    else
        text[got] = '\0';
    if (close(fd) != 0)
        return failure_of_call(failure, "close", own, errno);
    return got < 0 ? -1 : 0;
}

int cgroup_leave_step(struct failure *failure)
{
    char text[PATH_MAX], file[PATH_MAX];
    int fd, result = 0;

    if (read_own(text, sizeof(text), failure) != 0)
        return -1;
    cgroup_outside(text, file, sizeof(file));
    if (file[0] == '\0')
        return 0;
    fd = open(file, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return failure_of_call(failure, "open", file, errno);
    if (write(fd, "0", 1) != 1)
        result = failure_of_call(failure, "write", file, errno);
    if (close(fd) != 0)
        return failure_of_call(failure, "close", file, errno);
    return result;
}
