/* Variables by which libraries of a step choose network interfaces. */
#ifndef CHROOT_NETWORK_H
#define CHROOT_NETWORK_H

#include <slurm/spank.h>

#include "failure.h"

/*
 * Set them to `interfaces`, names with commas; empty sets none. A variable that the step has stays.
 * Returns 0, or -1 with the reason.
 */
int network_set_variables(spank_t spank, const char *interfaces, struct failure *failure);

#endif
