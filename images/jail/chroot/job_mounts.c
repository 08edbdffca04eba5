#define _GNU_SOURCE
#include "job_mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char variable[] = "${SLURM_JOB_ID}";
static const char temporary[] = "tmp"; /* the mode of lines that the plug-in itself adds */

/* Modes of folders of jobs, and of those above, which hide temporary files from other jobs. */
struct modes {
    mode_t above;
    mode_t job;
};

/* A folder that is open, and its path for messages. */
struct folder {
    int fd;
    char path[PATH_MAX];
};

static void close_fd(int fd, const char *path, struct failure *failure)
{
    if (fd >= 0 && close(fd) != 0)
        (void) failure_of_call(failure, "close", path, errno);
}

static int result_of(const struct failure *failure)
{
    return failure->text[0] == '\0' ? 0 : -1;
}

static int check_file(int fd, const char *file, struct failure *failure)
{
    struct stat found;

    if (fstat(fd, &found) != 0)
        return failure_of_call(failure, "fstat", file, errno);
    if (!S_ISREG(found.st_mode) || found.st_uid != 0 || (found.st_mode & (S_IWGRP | S_IWOTH)) != 0)
        return failure_of(failure, "must be a file that root alone can write", file);
    return 0;
}

static int read_text(struct job_mounts *mounts, int fd, const char *file, struct failure *failure)
{
    size_t size = 0;

    for (;;) {
        ssize_t got = read(fd, mounts->text + size, sizeof(mounts->text) - size);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return failure_of_call(failure, "read", file, errno);
        if (got == 0)
            break;
        size += (size_t) got;
        if (size == sizeof(mounts->text))
            return failure_of_call(failure, "read", file, EFBIG);
    }
    mounts->text[size] = '\0';
    return strlen(mounts->text) == size ? 0 : failure_of(failure, "has a zero byte", file);
}

int job_mounts_read(struct job_mounts *mounts, const char *file, bool needed,
                    struct failure *failure)
{
    int fd = open(file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

    mounts->text[0] = '\0';
    if (fd < 0 && errno == ENOENT && !needed)
        return 0;
    if (fd < 0)
        return failure_of_call(failure, "open", file, errno);
    if (check_file(fd, file, failure) == 0)
        (void) read_text(mounts, fd, file, failure);
    close_fd(fd, file, failure);
    return result_of(failure);
}

/*
 * One name below a folder. Users write in both the volume and the jail, so nothing follows a link,
 * and nothing is looked up twice: all later calls are on the descriptor.
 */
static int open_name(const struct folder *parent, const char *name)
{
    const struct open_how how = {
        .flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };

    return (int) syscall(SYS_openat2, parent->fd, name, &how, sizeof(how));
}

static int extend(struct folder *folder, const struct folder *parent, const char *name,
                  struct failure *failure)
{
    int length = snprintf(folder->path, sizeof(folder->path), "%s/%s", parent->path, name);

    folder->fd = -1;
    if (length < 0 || (size_t) length >= sizeof(folder->path))
        return failure_of_call(failure, "open", name, ENAMETOOLONG);
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return failure_of(failure, "a path with . or .. is not mounted", folder->path);
    return 0;
}

/* Open a folder below another one, made with `mode` where it is absent. */
static int open_or_make(struct folder *folder, const struct folder *parent, const char *name,
                        mode_t mode, struct failure *failure)
{
    bool made = false;

    if (extend(folder, parent, name, failure) != 0)
        return -1;
    folder->fd = open_name(parent, name);
    if (folder->fd < 0 && errno == ENOENT) {
        made = mkdirat(parent->fd, name, mode) == 0;
        if (!made && errno != EEXIST) /* another node may have made it */
            return failure_of_call(failure, "mkdirat", folder->path, errno);
        folder->fd = open_name(parent, name);
    }
    if (folder->fd < 0)
        return failure_of_call(failure, "openat2", folder->path, errno);
    /* Whatever the umask is; 000 needs none, and another node may have finished the folder. */
    if (made && mode != 0 && fchmod(folder->fd, mode) != 0)
        return failure_of_call(failure, "fchmod", folder->path, errno);
    return 0;
}

/* A folder above those of jobs: nobody may put another one in the place of a job's. */
static int check_shared(const struct folder *folder, struct failure *failure)
{
    struct stat found;

    if (fstat(folder->fd, &found) != 0)
        return failure_of_call(failure, "fstat", folder->path, errno);
    if (found.st_uid != 0)
        return failure_of(failure, "folders of jobs need a folder of root's, which is not",
                          folder->path);
    if ((found.st_mode & (S_IWGRP | S_IWOTH)) != 0 && (found.st_mode & S_ISVTX) == 0)
        return failure_of(failure, "others than root may rename folders of jobs (chmod 755) in",
                          folder->path);
    return 0;
}

/*
 * A job's folder is made without any permission, gets its owner, and last its mode. So one of root
 * without permissions was not finished, on this node or another one, and any can do it.
 */
static int give_to_job(const struct folder *folder, const struct job *job, mode_t mode,
                       struct failure *failure)
{
    struct stat found;
    bool unfinished;

    if (fstat(folder->fd, &found) != 0)
        return failure_of_call(failure, "fstat", folder->path, errno);
    unfinished = (found.st_mode & 07777) == 0;
    if (found.st_uid == 0 && unfinished && fchown(folder->fd, job->user, job->group) != 0)
        return failure_of_call(failure, "fchown", folder->path, errno);
    if (found.st_uid != job->user && !(found.st_uid == 0 && unfinished))
        return failure_of(failure, "this folder of the job has another owner", folder->path);
    if (unfinished && fchmod(folder->fd, mode) != 0)
        return failure_of_call(failure, "fchmod", folder->path, errno);
    return 0;
}

/* The name with the job's id, in `expanded`. Returns whether it has the variable; -1: too long. */
static int expand(char *expanded, size_t size, const char *name, const struct job *job)
{
    int found = 0;
    size_t used = 0;

    while (*name != '\0') {
        int length;

        if (strncmp(name, variable, sizeof(variable) - 1) == 0) {
            length = snprintf(expanded + used, size - used, "%u", job->id);
            name += sizeof(variable) - 1;
            found = 1;
        } else {
            length = snprintf(expanded + used, size - used, "%c", *name++);
        }
        if (length < 0 || used + (size_t) length >= size)
            return -1;
        used += (size_t) length;
    }
    return found;
}

/* Go on in a folder that is open, or was not opened. */
static void replace(struct folder *folder, const struct folder *next, struct failure *failure)
{
    close_fd(folder->fd, folder->path, failure);
    *folder = *next;
}

/* From the volume to the job's folder in it. */
static int open_source(struct folder *folder, const char *volume, char *path,
                       const struct job *job, struct modes modes, struct failure *failure)
{
    struct folder next;
    char name[NAME_MAX + 1], *rest = path, *word;
    bool of_job = false;

    (void) snprintf(folder->path, sizeof(folder->path), "%s", volume);
    folder->fd = open(volume, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder->fd < 0)
        return failure_of_call(failure, "open", volume, errno);
    while ((word = strsep(&rest, "/")) != NULL) {
        int found;

        if (*word == '\0')
            continue;
        found = expand(name, sizeof(name), word, job);
        if (found < 0)
            return failure_of_call(failure, "openat2", word, ENAMETOOLONG);
        of_job = of_job || found > 0;
        if (strchr(name, '$') != NULL)
            return failure_of(failure, "this variable is not known, only ${SLURM_JOB_ID}", word);
        (void) open_or_make(&next, folder, name, of_job ? 0 : modes.above, failure);
        replace(folder, &next, failure);
        if (result_of(failure) != 0 ||
            (of_job ? give_to_job(folder, job, modes.job, failure) : check_shared(folder, failure)) !=
                0)
            return -1;
    }
    return of_job ? 0 : failure_of(failure, "the same folder for all jobs", folder->path);
}

/* From the jail's top to the place of the mount. */
static int open_target(struct folder *folder, const char *root, char *path,
                       struct failure *failure)
{
    struct folder next;
    char *rest = path, *word;
    int depth = 0;

    (void) snprintf(folder->path, sizeof(folder->path), "%s", root);
    folder->fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder->fd < 0)
        return failure_of_call(failure, "open", root, errno);
    while ((word = strsep(&rest, "/")) != NULL) {
        if (*word == '\0')
            continue;
        (void) open_or_make(&next, folder, word, 0755, failure);
        replace(folder, &next, failure);
        if (result_of(failure) != 0)
            return -1;
        depth++;
    }
    return depth > 0 ? 0 : failure_of(failure, "a job's folder cannot be the whole of", root);
}

static int mount_on(const struct folder *source, const struct folder *target, bool read_only,
                    struct failure *failure)
{
    struct mount_attr attributes = {.attr_set = MOUNT_ATTR_RDONLY};
    const unsigned both = MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH;
    int tree = open_tree(source->fd, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

    if (tree < 0)
        return failure_of_call(failure, "open_tree", source->path, errno);
    if (read_only && mount_setattr(tree, "", AT_EMPTY_PATH, &attributes, sizeof(attributes)) != 0)
        (void) failure_of_call(failure, "mount_setattr", source->path, errno);
    else if (move_mount(tree, "", target->fd, "", both) != 0)
        (void) failure_of_call(failure, "move_mount", target->path, errno);
    close_fd(tree, source->path, failure);
    return result_of(failure);
}

static int apply(char *line, const char *root, const struct job *job, struct failure *failure)
{
    struct folder source = {.fd = -1}, target = {.fd = -1};
    const char *volume = strsep(&line, "\t");
    char *path = strsep(&line, "\t"), *place = strsep(&line, "\t");
    const char *mode = strsep(&line, "\t");
    struct modes modes = {.above = 0755, .job = 0700};

    if (mode == NULL || line != NULL || *volume != '/' || *place != '/' ||
        (strcmp(mode, "rw") != 0 && strcmp(mode, "ro") != 0 && strcmp(mode, temporary) != 0))
        return failure_of(failure, "no line of the list of job mounts", volume);
    if (strcmp(mode, temporary) == 0)
        modes = (struct modes){.above = 0700, .job = 01777};
    if (open_source(&source, volume, path, job, modes, failure) == 0 &&
        open_target(&target, root, place, failure) == 0)
        (void) mount_on(&source, &target, strcmp(mode, "ro") == 0, failure);
    close_fd(source.fd, source.path, failure);
    close_fd(target.fd, target.path, failure);
    return result_of(failure);
}

int job_mounts_add_temporary(struct job_mounts *mounts, const char *volume, const char *folder,
                             const char *target, struct failure *failure)
{
    size_t used = strlen(mounts->text), size = sizeof(mounts->text) - used;
    int length = snprintf(mounts->text + used, size, "\n%s\t%s/%s\t%s\t%s\n", volume, folder,
                          variable, target, temporary);

    if (length < 0 || (size_t) length >= size)
        return failure_of_call(failure, "add mount", target, EFBIG);
    return 0;
}

int job_mounts_apply(struct job_mounts *mounts, const char *root, const struct job *job,
                     struct failure *failure)
{
    char *rest = mounts->text, *line;

    while ((line = strsep(&rest, "\n")) != NULL)
        if (*line != '\0' && apply(line, root, job, failure) != 0)
            return -1;
    return 0;
}
