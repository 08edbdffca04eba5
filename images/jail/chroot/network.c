#include "network.h"

#include <stdbool.h>
#include <stdio.h>

#include "arguments.h"

/* `others` choose the same interfaces, by another name or by exclusion; each is the user's choice. */
struct variable {
    const char *name;
    const char *prefix;
    const char *others[4];
};

/*
 * Sources:
 * NCCL: its user guide, "Environment Variables": a list of prefixes; with `=` before it, of names.
 * Gloo: PyTorch, torch.distributed, "Choosing the network interface to use".
 * Open MPI: `ompi_info --all`, btl_tcp_if_include; up to 4.1 oob_tcp_if_include for its daemons. From
 * 5.0 these are PRRTE's, `prte_info`: prte_if_include, with oob_tcp_if_include as a synonym.
 * PMIx: `pmix_info`: ptl_base_if_include from 4, with the name of 3, ptl_tcp_if_include, as a
 * synonym. Both together give a warning, so this has the one that all releases take.
 * if_include and if_exclude end a program of Open MPI, PRRTE and PMIx when both are set.
 *
 * UCX_NET_DEVICES is not one of them: it also limits RDMA devices, so a name of Ethernet would take
 * InfiniBand from the job.
 */
static const struct variable variables[] = {
    {"NCCL_SOCKET_IFNAME", "=", {NULL}},
    {"GLOO_SOCKET_IFNAME", "", {NULL}},
    {"OMPI_MCA_btl_tcp_if_include", "", {"OMPI_MCA_btl_tcp_if_exclude"}},
    {"OMPI_MCA_oob_tcp_if_include", "", {"OMPI_MCA_oob_tcp_if_exclude"}},
    {"PRTE_MCA_prte_if_include",
     "",
     {"PRTE_MCA_prte_if_exclude", "PRTE_MCA_oob_tcp_if_include", "PRTE_MCA_oob_tcp_if_exclude"}},
    {"PMIX_MCA_ptl_tcp_if_include",
     "",
     {"PMIX_MCA_ptl_tcp_if_exclude", "PMIX_MCA_ptl_base_if_include", "PMIX_MCA_ptl_base_if_exclude"}},
};

/* A value that does not fit is one, too: spank(8), ESPANK_NOSPACE. */
static bool is_set(spank_t spank, const char *name)
{
    char value[2];

    return spank_getenv(spank, name, value, sizeof(value)) != ESPANK_ENV_NOEXIST;
}

static bool is_chosen(spank_t spank, const struct variable *one)
{
    for (size_t i = 0; i < sizeof(one->others) / sizeof(one->others[0]); i++)
        if (one->others[i] != NULL && is_set(spank, one->others[i]))
            return true;
    return false;
}

int network_set_variables(spank_t spank, const char *interfaces, struct failure *failure)
{
    char value[sizeof(((struct arguments *) NULL)->network_interfaces) + 1];

    if (interfaces[0] == '\0')
        return 0;
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
        const struct variable *one = &variables[i];
        spank_err_t error;

        if (is_chosen(spank, one))
            continue;
        (void) snprintf(value, sizeof(value), "%s%s", one->prefix, interfaces);
        error = spank_setenv(spank, one->name, value, 0);
        if (error != ESPANK_SUCCESS && error != ESPANK_ENV_EXISTS)
            return failure_of(failure, spank_strerror(error), one->name);
    }
    return 0;
}
