/* Folders of a job's own, which are mounted in the jail for each of its steps. */
#ifndef CHROOT_JOB_MOUNTS_H
#define CHROOT_JOB_MOUNTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "failure.h"

enum { JOB_MOUNTS_SIZE = 128 * 1024 }; /* the largest file, in bytes */

struct job {
    uint32_t id;
    uid_t user;
    gid_t group;
};

/* The text of the file that lists the mounts; empty: none. */
struct job_mounts {
    char text[JOB_MOUNTS_SIZE + 1];
};

/*
 * Read the list of mounts. Each line is "VOLUME<tab>FOLDER<tab>TARGET<tab>rw|ro": the path of a
 * volume outside the jail, a path below it with ${SLURM_JOB_ID}, an absolute path in the jail. The
 * file must be root's alone; absent it lists nothing, unless it is `needed`. Returns 0, or -1 with the
 * reason.
 */
int job_mounts_read(struct job_mounts *mounts, const char *file, bool needed,
                    struct failure *failure);

/*
 * Add a mount of the plug-in's own: a folder of the job below `folder` of `volume`, which is the
 * job's alone, as a place of temporary files at `target` in the jail. Returns 0, or -1.
 */
int job_mounts_add_temporary(struct job_mounts *mounts, const char *volume, const char *folder,
                             const char *target, struct failure *failure);

/*
 * Make the job's folders with the job's owner, and mount them below `root`. The caller has a mount
 * namespace of its own, in which the volumes are still to be found. Returns 0, or -1.
 */
int job_mounts_apply(struct job_mounts *mounts, const char *root, const struct job *job,
                     struct failure *failure);

#endif
