/*
 * SPANK plug-in: each batch, interactive and normal step runs in the root that plugstack.conf
 * names, in namespaces of its own. README.md has the reasons for the places of the calls.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <slurm/slurm.h>
#include <slurm/spank.h>
#include <stdbool.h>
#include <stdint.h>
#include <unistd.h>

#include "arguments.h"
#include "capabilities.h"
#include "enter.h"
#include "isolation.h"
#include "job_mounts.h"
#include "network.h"
#include "reaper.h"

SPANK_PLUGIN(chroot, 1)

static struct arguments arguments;
static struct failure failure;
static struct root root = {.device = 0, .inode = 0, .old_namespace = -1, .old_root = -1};
static struct job_mounts mounts;
static struct reaper reaper = {.pid = 0, .fd = -1, .self = -1};
static bool active;       /* slurmstepd of a step that enters the root */
static bool forks_inside; /* children of the main thread belong to the job's namespaces */
static bool forked;       /* this process is a child of slurmstepd */
static struct failure fork_failure;

static int report(const char *task)
{
    slurm_error("chroot: cannot %s: %s", task, failure.text);
    return -1;
}

/*
 * slurmstepd's main thread forks the tasks and their epilogs. It is in the PID namespace only while
 * it forks: in between it could not start threads (clone(2), EINVAL with CLONE_THREAD).
 */
static _Thread_local bool forking; /* this thread is the main one, and forks */

static void before_fork(void)
{
    forking = forks_inside && gettid() == getpid();
    if (forking && reaper.pid > 0)
        (void) reaper_enter(&reaper, &fork_failure);
}

static void after_fork(void)
{
    if (!forking)
        return;
    forking = false;
    if (reaper.pid > 0)
        (void) reaper_leave(&reaper, &fork_failure);
    if (fork_failure.text[0] != '\0')
        slurm_error("chroot: cannot fork into the job's namespaces: %s", fork_failure.text);
    fork_failure.text[0] = '\0';
}

/* A child that is not inside does not run. */
static void after_fork_in_child(void)
{
    forks_inside = false;
    forked = true;
    if (!forking)
        return;
    if (fork_failure.text[0] == '\0') {
        if (reaper.pid > 0)
            (void) reaper_join(&reaper, &fork_failure);
        else
            (void) protect_tasks(&fork_failure);
        if (fork_failure.text[0] != '\0')
            slurm_error("chroot: cannot join the job's namespaces: %s", fork_failure.text);
    }
    if (fork_failure.text[0] != '\0')
        _exit(1);
}

static int get_job(spank_t spank, struct job *job)
{
    if (spank_get_item(spank, S_JOB_ID, &job->id) != ESPANK_SUCCESS)
        return failure_of(&failure, "spank_get_item", "S_JOB_ID");
    if (spank_get_item(spank, S_JOB_UID, &job->user) != ESPANK_SUCCESS)
        return failure_of(&failure, "spank_get_item", "S_JOB_UID");
    if (spank_get_item(spank, S_JOB_GID, &job->group) != ESPANK_SUCCESS)
        return failure_of(&failure, "spank_get_item", "S_JOB_GID");
    return 0;
}

static int enter(spank_t spank)
{
    struct job job;
    bool isolated = false;
    int error;

    if (get_job(spank, &job) != 0 ||
        job_mounts_read(&mounts, arguments.job_mounts, arguments.needs_job_mounts, &failure) != 0 ||
        isolation_enter_ipc(job.id, &isolated, &failure) != 0 ||
        (isolated && isolation_add_mounts(&mounts, &failure) != 0) ||
        enter_root(arguments.root, &root, &mounts, &job, &failure) != 0)
        return -1;
    error = pthread_atfork(before_fork, after_fork, after_fork_in_child);
    if (error != 0)
        return failure_of_call(&failure, "pthread_atfork", "slurmstepd", error);
    if (arguments.pid_namespace && reaper_start(&reaper, &root, &failure) != 0)
        return -1;
    if (limit_capabilities(&failure) != 0)
        return -1;
    return forget_old_root(&root, &failure);
}

/* A failure here would be silent: slurm_spank_user_init returns it, when the user can read it. */
int slurm_spank_init(spank_t spank, int count, char *words[])
{
    uint32_t step;

    if (spank_context() != S_CTX_REMOTE)
        return 0;
    active = true;
    if (spank_get_item(spank, S_JOB_STEPID, &step) != ESPANK_SUCCESS)
        (void) failure_of(&failure, "spank_get_item", "S_JOB_STEPID");
    else if (step == SLURM_EXTERN_CONT)
        active = false;
    else if (arguments_parse(&arguments, count, words, &failure) == 0 && enter(spank) != 0)
        (void) return_from_root(&root, &failure);
    return 0;
}

/* The last hook before slurmstepd forks the tasks. */
int slurm_spank_user_init(spank_t spank, int count, char *words[])
{
    (void) count, (void) words;
    if (!active)
        return 0;
    if (failure.text[0] != '\0')
        return report("enter the job's root");
    if (network_set_variables(spank, arguments.network_interfaces, &failure) != 0)
        return report("set variables of the network interfaces");
    forks_inside = true;
    return 0;
}

/* In the task, as root, after plug-ins of Slurm that move it to other mounts. */
int slurm_spank_task_init_privileged(spank_t spank, int count, char *words[])
{
    (void) spank, (void) count, (void) words;
    if (!active || check_root(&root, &failure) == 0)
        return 0;
    return report("run the task");
}

/*
 * Once for each job and node, before its first step, in a process of root outside the jail. A job that
 * began before plugstack.conf changed keeps what it began with. A failure drains the node.
 */
int slurm_spank_job_prolog(spank_t spank, int count, char *words[])
{
    uint32_t job;

    if (arguments_parse(&arguments, count, words, &failure) != 0 || !arguments.job_isolation)
        return 0; /* each step reports the former */
    if (spank_get_item(spank, S_JOB_ID, &job) != ESPANK_SUCCESS)
        (void) failure_of(&failure, "spank_get_item", "S_JOB_ID");
    else if (isolation_begin(job, &failure) == 0)
        return 0;
    return report("isolate the job");
}

/* The same after its last step. What cannot be removed is in slurmd's log, and drains no node. */
int slurm_spank_job_epilog(spank_t spank, int count, char *words[])
{
    uint32_t job;

    (void) count, (void) words;
    if (spank_get_item(spank, S_JOB_ID, &job) != ESPANK_SUCCESS)
        (void) failure_of(&failure, "spank_get_item", "S_JOB_ID");
    else
        (void) isolation_remove(job, &failure);
    if (failure.text[0] != '\0')
        (void) report("remove the job's own files");
    return 0;
}

/*
 * When Slurm unloads the plug-in: all tasks and their epilogs have ended, and so has slurm_spank_exit of
 * other plug-ins. They may run programs of the jail there, which must be inside as well.
 */
__attribute__((destructor)) static void stop(void)
{
    if (!forked && reaper.pid > 0)
        (void) reaper_stop(&reaper, &failure);
}
