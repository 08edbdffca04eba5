#define _GNU_SOURCE
#include "capabilities.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* What root needs for its own work in the jail: files, accounts, su, sudo, ports below 1024. */
static const unsigned kept[] = {
    CAP_CHOWN,  CAP_DAC_OVERRIDE, CAP_FOWNER,           CAP_FSETID,      CAP_KILL,    CAP_SETGID,
    CAP_SETUID, CAP_SETPCAP,      CAP_NET_BIND_SERVICE, CAP_AUDIT_WRITE, CAP_SETFCAP,
};

static bool is_kept(unsigned capability)
{
    for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
        if (kept[i] == capability)
            return true;
    return false;
}

/* The inheritable set bypasses the bounding set when uid 0 executes a program. */
static int clear_inheritable(struct failure *failure)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3];

    if (syscall(SYS_capget, &header, sets) != 0)
        return failure_of_call(failure, "capget", "self", errno);
    for (size_t i = 0; i < _LINUX_CAPABILITY_U32S_3; i++)
        sets[i].inheritable = 0;
    if (syscall(SYS_capset, &header, sets) != 0)
        return failure_of_call(failure, "capset", "inheritable", errno);
    return 0;
}

int limit_capabilities(struct failure *failure)
{
    for (unsigned capability = 0;; capability++) {
        int bounded = prctl(PR_CAPBSET_READ, capability, 0, 0, 0);

        if (bounded < 0 && errno == EINVAL && capability > CAP_SETFCAP)
            break; /* above the last one of this kernel */
        if (bounded < 0)
            return failure_of_call(failure, "prctl", "PR_CAPBSET_READ", errno);
        if (bounded == 1 && !is_kept(capability) &&
            prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0)
            return failure_of_call(failure, "prctl", "PR_CAPBSET_DROP", errno);
    }
    return clear_inheritable(failure);
}
