/* Capabilities of a program in the jail, of a step and of a session alike. */
#ifndef CHROOT_CAPABILITIES_H
#define CHROOT_CAPABILITIES_H

#include "failure.h"

/*
 * Limit what any program that the thread starts can have as capabilities. Returns 0, or -1 with the
 * reason.
 */
int limit_capabilities(struct failure *failure);

#endif
