#define _GNU_SOURCE
#include "isolation.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <spawn.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Below /run of the container, which is not in the jail. */
static const char run[] = "/run/penstock";
static const char spaces[] = "/run/penstock/ipc";
static const char lock_file[] = "/run/penstock/ipc/lock";
static const char own_space[] = "/proc/self/ns/ipc";

/* Folders of jobs are below this one of root, which no user can enter. */
struct place {
    const char *volume; /* of the container: files stay on the disk, or in the memory, of its /tmp */
    const char *folder;
    const char *target; /* in the jail */
};

static const struct place places[] = {
    {"/tmp", ".penstock-jobs/tmp", "/tmp"},
    {"/tmp", ".penstock-jobs/var-tmp", "/var/tmp"},
    {"/dev/shm", ".penstock-jobs", "/dev/shm"},
};

static int make_folder(const char *path, mode_t mode, struct failure *failure)
{
    if (mkdir(path, mode) != 0 && errno != EEXIST)
        return failure_of_call(failure, "mkdir", path, errno);
    return 0;
}

/* Two steps of a job may begin at the same time. Returns a descriptor, or -1. */
static int lock(struct failure *failure)
{
    int fd = open(lock_file, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (fd < 0)
        return failure_of_call(failure, "open", lock_file, errno);
    if (flock(fd, LOCK_EX) == 0)
        return fd;
    (void) failure_of_call(failure, "flock", lock_file, errno);
    (void) close(fd);
    return -1;
}

static void name_space(char *path, size_t size, uint32_t job)
{
    (void) snprintf(path, size, "%s/%u", spaces, job);
}

static int make_and_keep(const char *path, struct failure *failure)
{
    if (unshare(CLONE_NEWIPC) != 0)
        return failure_of_call(failure, "unshare", "CLONE_NEWIPC", errno);
    if (mount(own_space, path, NULL, MS_BIND, NULL) != 0)
        return failure_of_call(failure, "mount bind", path, errno);
    return 0;
}

static int enter(const char *path, bool *isolated, struct failure *failure)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW), result = 0;

    *isolated = fd >= 0;
    if (fd < 0)
        return errno == ENOENT ? 0 : failure_of_call(failure, "open", path, errno);
    /* EINVAL: the file is as isolation_begin made it, so this is the first step. */
    if (setns(fd, CLONE_NEWIPC) != 0)
        result = errno == EINVAL ? make_and_keep(path, failure)
                                 : failure_of_call(failure, "setns", path, errno);
    return close(fd) == 0 ? result : failure_of_call(failure, "close", path, errno);
}

int isolation_begin(uint32_t job, struct failure *failure)
{
    char path[64];
    int fd;

    if (make_folder(run, 0755, failure) != 0 || make_folder(spaces, 0700, failure) != 0)
        return -1;
    name_space(path, sizeof(path), job);
    fd = open(path, O_RDONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return failure_of_call(failure, "open", path, errno);
    return close(fd) == 0 ? 0 : failure_of_call(failure, "close", path, errno);
}

int isolation_enter_ipc(uint32_t job, bool *isolated, struct failure *failure)
{
    char path[64];
    int fd, result;

    *isolated = false;
    if (access(spaces, F_OK) != 0) /* ENOENT: no job was ever isolated here */
        return errno == ENOENT ? 0 : failure_of_call(failure, "access", spaces, errno);
    fd = lock(failure);
    if (fd < 0)
        return -1;
    name_space(path, sizeof(path), job);
    result = enter(path, isolated, failure);
    return close(fd) == 0 ? result : failure_of_call(failure, "close", lock_file, errno);
}

int isolation_add_mounts(struct job_mounts *mounts, struct failure *failure)
{
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
        if (job_mounts_add_temporary(mounts, places[i].volume, places[i].folder, places[i].target,
                                     failure) != 0)
            return -1;
    return 0;
}

/* rm does not follow links, and enters no other file system. */
static int remove_tree(char *path, struct failure *failure)
{
    char *const words[] = {"rm", "-rf", "--one-file-system", "--", path, NULL};
    char *const environment[] = {NULL};
    pid_t pid;
    int status, error = posix_spawn(&pid, "/usr/bin/rm", NULL, NULL, words, environment);

    if (error != 0)
        return failure_of_call(failure, "posix_spawn", "/usr/bin/rm", error);
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return failure_of_call(failure, "waitpid", path, errno);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return failure_of(failure, "rm cannot remove the files of the job", path);
    return 0;
}

int isolation_remove(uint32_t job, struct failure *failure)
{
    char path[PATH_MAX];

    name_space(path, sizeof(path), job);
    if (access(path, F_OK) != 0) /* ENOENT: the job was not isolated */
        return errno == ENOENT ? 0 : failure_of_call(failure, "access", path, errno);
    if (umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW) != 0 && errno != ENOENT && errno != EINVAL)
        (void) failure_of_call(failure, "umount2", path, errno);
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        (void) snprintf(path, sizeof(path), "%s/%s/%u", places[i].volume, places[i].folder, job);
        (void) remove_tree(path, failure);
    }
    /* Last, so that the removal can be tried again. */
    name_space(path, sizeof(path), job);
    if (failure->text[0] == '\0' && unlink(path) != 0)
        (void) failure_of_call(failure, "unlink", path, errno);
    return failure->text[0] == '\0' ? 0 : -1;
}
