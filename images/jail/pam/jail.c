/*
 * PAM module of sshd in front of a jail: cuts the capability bounding set as chroot.so does for
 * steps. sshd must have CAP_SYS_CHROOT until it has changed the root, and would leave it to root's
 * shell, which could leave the jail by a second chroot(2). The bounding set counts from the next
 * execve(2) on: sshd itself goes on, the shell and all that it starts are limited.
 */
#include <security/pam_ext.h>
#include <security/pam_modules.h>
#include <syslog.h>

#include "capabilities.h"

/* Called before sshd forks the process of the session. */
PAM_EXTERN __attribute__((visibility("default"))) int pam_sm_open_session(pam_handle_t *handle, int flags, int count, const char **words)
{
    struct failure failure = {.text = ""};

    (void) flags, (void) count, (void) words;
    if (limit_capabilities(&failure) == 0)
        return PAM_SUCCESS;
    pam_syslog(handle, LOG_ERR, "the session's capabilities cannot be limited: %s", failure.text);
    return PAM_SESSION_ERR;
}

PAM_EXTERN __attribute__((visibility("default"))) int pam_sm_close_session(pam_handle_t *handle, int flags, int count, const char **words)
{
    (void) handle, (void) flags, (void) count, (void) words;
    return PAM_SUCCESS;
}
