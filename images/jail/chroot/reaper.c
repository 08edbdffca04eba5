#define _GNU_SOURCE
#include "reaper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cgroup.h"
#include "enter.h"

enum { STOP_MS = 1000 }; /* longest wait for processes that the kernel cannot kill at once */

/*
 * Tasks enter the mount namespace by setns(2), which leads to the root of the namespace. It is the
 * jail unless slurmd runs in a chroot, where it would be the root outside.
 */
static int enter_again(const struct root *root, struct failure *failure)
{
    int fd = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return failure_of_call(failure, "open", "/proc/self/ns/mnt", errno);
    if (setns(fd, CLONE_NEWNS) != 0)
        return failure_of_call(failure, "setns", "CLONE_NEWNS of the reaper", errno);
    if (check_root(root, failure) != 0) {
        failure->text[0] = '\0';
        return failure_of(failure, "setns(CLONE_NEWNS)",
                          "slurmd runs in a chroot; its root must be that of a mount namespace");
    }
    return 0;
}

/*
 * PID 1. It is a copy of a process with threads, so it calls the kernel only. All signals are
 * blocked; children end without a wait(2) because SIGCHLD is ignored. It keeps its capabilities:
 * a process without them, as each task is, cannot trace it. It keeps the name "slurmstepd", by
 * which proctrack/linuxproc neither counts nor signals it.
 */
static void run_reaper(const struct root *root, const int ends[2], struct failure *failure)
{
    struct sigaction ignore;
    int report = ends[1];

    memset(&ignore, 0, sizeof(ignore));
    ignore.sa_handler = SIG_IGN;
    /*
     * A slurmstepd that ends before the prctl(2) sends no signal. The write below shows it: nobody
     * else has the end to read from.
     */
    if (close(ends[0]) != 0)
        (void) failure_of_call(failure, "close", "report of the reaper", errno);
    else if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0)
        (void) failure_of_call(failure, "prctl", "PR_SET_PDEATHSIG", errno);
    else if (sigaction(SIGCHLD, &ignore, NULL) != 0)
        (void) failure_of_call(failure, "sigaction", "SIGCHLD", errno);
    else if (chdir("/") != 0)
        (void) failure_of_call(failure, "chdir", "/", errno);
    else if (mount_proc(failure) == 0 && cgroup_leave_step(failure) == 0 &&
             enter_again(root, failure) == 0)
        (void) protect_kernel(failure);
    if (write(report, failure->text, sizeof(failure->text)) != (ssize_t) sizeof(failure->text) ||
        failure->text[0] != '\0')
        _exit(1);
    /* Its descriptors are slurmstepd's: output that stays open would keep the step running. */
    if (syscall(SYS_close_range, 0U, ~0U, 0U) != 0)
        _exit(1);
    for (;;)
        (void) pause();
}

/* What the reaper reports: an empty text when the namespace is complete. */
static int read_report(int fd, struct failure *failure)
{
    size_t size = 0;

    while (size < sizeof(failure->text)) {
        ssize_t got = read(fd, failure->text + size, sizeof(failure->text) - size);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return failure_of_call(failure, "read", "report of the reaper", errno);
        if (got == 0) {
            failure->text[0] = '\0';
            return failure_of(failure, "clone(CLONE_NEWPID)", "the reaper ended at once");
        }
        size += (size_t) got;
    }
    failure->text[sizeof(failure->text) - 1] = '\0';
    return failure->text[0] == '\0' ? 0 : -1;
}

static int clone_reaper(struct reaper *reaper, const struct root *root, const int report[2],
                        struct failure *failure)
{
    const unsigned long flags = CLONE_NEWPID | CLONE_NEWNS | CLONE_PIDFD | SIGCHLD;
    sigset_t all, before;
    long pid;
    int error;

    if (sigfillset(&all) != 0)
        return failure_of_call(failure, "sigfillset", "all", errno);
    error = pthread_sigmask(SIG_SETMASK, &all, &before);
    if (error != 0)
        return failure_of_call(failure, "pthread_sigmask", "all", error);
    pid = syscall(SYS_clone, flags, NULL, &reaper->fd, NULL, NULL);
    if (pid == 0)
        run_reaper(root, report, failure);
    if (pid < 0)
        (void) failure_of_call(failure, "clone", "CLONE_NEWPID", errno);
    else
        reaper->pid = (pid_t) pid;
    error = pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error != 0)
        (void) failure_of_call(failure, "pthread_sigmask", "before", error);
    return failure->text[0] == '\0' ? 0 : -1;
}

static int close_one(int fd, const char *name, struct failure *failure)
{
    return close(fd) == 0 ? 0 : failure_of_call(failure, "close", name, errno);
}

int reaper_start(struct reaper *reaper, const struct root *root, struct failure *failure)
{
    int report[2];

    reaper->pid = 0;
    reaper->fd = -1;
    reaper->self = (int) syscall(SYS_pidfd_open, getpid(), 0U);
    if (reaper->self < 0)
        return failure_of_call(failure, "pidfd_open", "self", errno);
    if (pipe2(report, O_CLOEXEC) != 0)
        return failure_of_call(failure, "pipe2", "report of the reaper", errno);
    (void) clone_reaper(reaper, root, report, failure);
    (void) close_one(report[1], "report of the reaper", failure);
    if (failure->text[0] == '\0')
        (void) read_report(report[0], failure);
    (void) close_one(report[0], "report of the reaper", failure);
    if (failure->text[0] == '\0')
        return 0;
    (void) reaper_stop(reaper, failure);
    return -1;
}

static int set_namespace(int fd, int kind, const char *name, struct failure *failure)
{
    uid_t user = geteuid();
    int result = 0;

    if (set_effective_uid(0, failure) != 0)
        return -1;
    if (setns(fd, kind) != 0)
        result = failure_of_call(failure, "setns", name, errno);
    return set_effective_uid(user, failure) == 0 ? result : -1;
}

int reaper_enter(const struct reaper *reaper, struct failure *failure)
{
    return set_namespace(reaper->fd, CLONE_NEWPID, "CLONE_NEWPID of the reaper", failure);
}

int reaper_leave(const struct reaper *reaper, struct failure *failure)
{
    return set_namespace(reaper->self, CLONE_NEWPID, "CLONE_NEWPID of slurmstepd", failure);
}

int reaper_join(const struct reaper *reaper, struct failure *failure)
{
    char folder[PATH_MAX];

    if (getcwd(folder, sizeof(folder)) == NULL)
        folder[0] = '\0';
    if (set_namespace(reaper->fd, CLONE_NEWNS, "CLONE_NEWNS of the reaper", failure) != 0)
        return -1;
    /* In a process that was forked outside the PID namespace this link leads nowhere. */
    if (access("/proc/self/stat", F_OK) != 0)
        return failure_of_call(failure, "access", "/proc/self/stat", errno);
    /* slurmstepd enters the step's folder again, and reports when it cannot. */
    if (folder[0] == '/' && chdir(folder) != 0 && errno != EACCES && errno != ENOENT)
        return failure_of_call(failure, "chdir", folder, errno);
    return 0;
}

int reaper_stop(struct reaper *reaper, struct failure *failure)
{
    int result = 0;

    if (reaper->pid > 0) {
        struct pollfd ended = {.fd = reaper->fd, .events = POLLIN};

        if (syscall(SYS_pidfd_send_signal, reaper->fd, SIGKILL, NULL, 0U) != 0 && errno != ESRCH)
            result = failure_of_call(failure, "pidfd_send_signal", "reaper", errno);
        if (poll(&ended, 1, STOP_MS) < 0 && errno != EINTR)
            result = failure_of_call(failure, "poll", "reaper", errno);
        /* slurmstepd may have waited for it: ECHILD. */
        if (waitpid(reaper->pid, NULL, WNOHANG) < 0 && errno != ECHILD)
            result = failure_of_call(failure, "waitpid", "reaper", errno);
        reaper->pid = 0;
    }
    if (reaper->fd >= 0 && close_one(reaper->fd, "reaper", failure) != 0)
        result = -1;
    if (reaper->self >= 0 && close_one(reaper->self, "slurmstepd", failure) != 0)
        result = -1;
    reaper->fd = reaper->self = -1;
    return result;
}
