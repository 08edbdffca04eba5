#define _GNU_SOURCE
#include "enter.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sched.h>
#include <stddef.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Their permission bits allow uid 0 to write, whatever capabilities it lacks. */
static const char *const read_only[] = {
    "/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger",
};

/* A raw call, because that of glibc changes all threads of slurmstepd. */
int set_effective_uid(uid_t uid, struct failure *failure)
{
    if (geteuid() != uid && syscall(SYS_setresuid, (uid_t) -1, uid, (uid_t) -1) != 0)
        return failure_of_call(failure, "setresuid", "effective uid", errno);
    return 0;
}

/*
 * glibc reads nsswitch.conf and loads its modules at the first lookup. A first lookup after the
 * change of the root would load, as root, libraries that the jail's users can write.
 */
static void load_name_services(void)
{
    struct passwd user, *found_user;
    struct group group, *found_group;
    char buffer[16384];
    const char *name = "no such name";

    /* The results do not matter, only that each source was asked. */
    (void) getpwnam_r(name, &user, buffer, sizeof(buffer), &found_user);
    (void) getgrnam_r(name, &group, buffer, sizeof(buffer), &found_group);
}

static int identify_root(struct root *root, struct failure *failure)
{
    struct stat found;

    if (stat("/", &found) != 0)
        return failure_of_call(failure, "stat", "/", errno);
    root->device = found.st_dev;
    root->inode = found.st_ino;
    return 0;
}

int check_root(const struct root *root, struct failure *failure)
{
    struct root found = {.device = 0, .inode = 0, .old_namespace = -1, .old_root = -1};

    if (identify_root(&found, failure) != 0)
        return -1;
    if (found.device != root->device || found.inode != root->inode)
        return failure_of(failure, "/", "this root is not the one of the job");
    return 0;
}

static int remember_old_root(struct root *root, struct failure *failure)
{
    root->old_root = -1;
    root->old_namespace = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
    if (root->old_namespace < 0)
        return failure_of_call(failure, "open", "/proc/self/ns/mnt", errno);
    root->old_root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root->old_root < 0)
        return failure_of_call(failure, "open", "/", errno);
    return 0;
}

int enter_root(const char *path, struct root *root, struct job_mounts *mounts,
               const struct job *job, struct failure *failure)
{
    load_name_services();
    if (remember_old_root(root, failure) != 0)
        return -1;
    if (unshare(CLONE_NEWNS) != 0)
        return failure_of_call(failure, "unshare", "CLONE_NEWNS", errno);
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
        return failure_of_call(failure, "mount private", "/", errno);
    if (mount(path, path, NULL, MS_BIND | MS_REC, NULL) != 0)
        return failure_of_call(failure, "mount bind", path, errno);
    if (job_mounts_apply(mounts, path, job, failure) != 0)
        return -1;
    if (chdir(path) != 0)
        return failure_of_call(failure, "chdir", path, errno);
    if (syscall(SYS_pivot_root, ".", ".") != 0)
        return failure_of_call(failure, "pivot_root", path, errno);
    /* The old root lies on the new one now. */
    if (umount2(".", MNT_DETACH) != 0)
        return failure_of_call(failure, "umount2", "old root", errno);
    if (chdir("/") != 0)
        return failure_of_call(failure, "chdir", "/", errno);
    return mount_proc(failure) == 0 ? identify_root(root, failure) : -1;
}

int forget_old_root(struct root *root, struct failure *failure)
{
    int result = 0;

    if (root->old_root >= 0 && close(root->old_root) != 0)
        result = failure_of_call(failure, "close", "old root", errno);
    if (root->old_namespace >= 0 && close(root->old_namespace) != 0)
        result = failure_of_call(failure, "close", "old mount namespace", errno);
    root->old_root = root->old_namespace = -1;
    return result;
}

int return_from_root(struct root *root, struct failure *failure)
{
    int result = 0;

    if (root->old_root >= 0) {
        if (setns(root->old_namespace, CLONE_NEWNS) != 0)
            result = failure_of_call(failure, "setns", "old mount namespace", errno);
        else if (fchdir(root->old_root) != 0)
            result = failure_of_call(failure, "fchdir", "old root", errno);
        else if (chroot(".") != 0)
            result = failure_of_call(failure, "chroot", "old root", errno);
    }
    return forget_old_root(root, failure) == 0 ? result : -1;
}

int mount_proc(struct failure *failure)
{
    if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) != 0)
        return failure_of_call(failure, "mount proc", "/proc", errno);
    return 0;
}

static int make_read_only(const char *path, struct failure *failure)
{
    const unsigned long flags = MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC;

    if (mount(path, path, NULL, MS_BIND, NULL) != 0) {
        if (errno == ENOENT) /* this kernel has none */
            return 0;
        return failure_of_call(failure, "mount bind", path, errno);
    }
    if (mount(NULL, path, NULL, flags, NULL) != 0)
        return failure_of_call(failure, "mount read-only", path, errno);
    return 0;
}

int protect_kernel(struct failure *failure)
{
    struct mount_attr attributes = {.attr_set = MOUNT_ATTR_RDONLY};

    for (size_t i = 0; i < sizeof(read_only) / sizeof(read_only[0]); i++)
        if (make_read_only(read_only[i], failure) != 0)
            return -1;
    /* EINVAL: a folder without a mount, so nothing of the kernel's. */
    if (mount_setattr(AT_FDCWD, "/sys", AT_RECURSIVE, &attributes, sizeof(attributes)) != 0 &&
        errno != EINVAL && errno != ENOENT)
        return failure_of_call(failure, "mount_setattr", "/sys", errno);
    return 0;
}

int protect_tasks(struct failure *failure)
{
    uid_t user = geteuid();
    int result;

    if (set_effective_uid(0, failure) != 0)
        return -1;
    if (unshare(CLONE_NEWNS) != 0)
        result = failure_of_call(failure, "unshare", "CLONE_NEWNS", errno);
    else
        result = protect_kernel(failure);
    return set_effective_uid(user, failure) == 0 ? result : -1;
}
