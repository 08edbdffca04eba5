#include "arguments.h"

#include <string.h>

static int parse_root(struct arguments *arguments, const char *word, struct failure *failure)
{
    size_t length = strlen(word);

    if (arguments->root[0] != '\0')
        return failure_of(failure, "plugstack.conf: more than one root", word);
    if (word[0] != '/')
        return failure_of(failure, "plugstack.conf: the root is no absolute path", word);
    if (strspn(word, "/") == length)
        return failure_of(failure, "plugstack.conf: the root must differ from", "/");
    if (length >= sizeof(arguments->root))
        return failure_of(failure, "plugstack.conf", "the path of the root is too long");
    memcpy(arguments->root, word, length + 1);
    return 0;
}

/* Written by the entry point of the worker's image; absent where no mount is declared. */
static const char list[] = "/run/penstock/job-mounts";

static int parse_job_mounts(struct arguments *arguments, const char *path, struct failure *failure)
{
    size_t length = strlen(path);

    if (path[0] != '/' || length >= sizeof(arguments->job_mounts))
        return failure_of(failure, "plugstack.conf: job_mounts is no absolute path", path);
    memcpy(arguments->job_mounts, path, length + 1);
    arguments->needs_job_mounts = true;
    return 0;
}

static bool is_letter(char one)
{
    return (one >= 'a' && one <= 'z') || (one >= 'A' && one <= 'Z');
}

/* Open MPI takes a name that does not begin with a letter for an address. */
static bool is_interface(const char *name, size_t length)
{
    static const char others[] = "0123456789._-";

    if (length == 0 || length > LONGEST_INTERFACE || !is_letter(name[0]))
        return false;
    for (size_t i = 1; i < length; i++)
        if (!is_letter(name[i]) && memchr(others, name[i], sizeof(others) - 1) == NULL)
            return false;
    return true;
}

static int parse_network_interfaces(struct arguments *arguments, const char *names,
                                    struct failure *failure)
{
    const char *name = names;

    for (int count = 1;; count++) {
        size_t length = strcspn(name, ",");

        if (count > MOST_INTERFACES)
            return failure_of(failure, "plugstack.conf: more than 8 network_interfaces", names);
        if (!is_interface(name, length))
            return failure_of(failure, "plugstack.conf: no name of a network interface", name);
        name += length;
        if (*name == '\0')
            break;
        name++;
    }
    memcpy(arguments->network_interfaces, names, (size_t) (name - names) + 1);
    return 0;
}

int arguments_parse(struct arguments *arguments, int count, char *const words[],
                    struct failure *failure)
{
    arguments->root[0] = '\0';
    arguments->pid_namespace = true;
    arguments->job_isolation = false;
    memcpy(arguments->job_mounts, list, sizeof(list));
    arguments->needs_job_mounts = false;
    arguments->network_interfaces[0] = '\0';
    for (int i = 0; i < count; i++) {
        if (strcmp(words[i], "pid_namespace=on") == 0)
            arguments->pid_namespace = true;
        else if (strcmp(words[i], "pid_namespace=off") == 0)
            arguments->pid_namespace = false;
        else if (strcmp(words[i], "job_isolation=on") == 0)
            arguments->job_isolation = true;
        else if (strcmp(words[i], "job_isolation=off") == 0)
            arguments->job_isolation = false;
        else if (strncmp(words[i], "job_mounts=", strlen("job_mounts=")) == 0) {
            if (parse_job_mounts(arguments, words[i] + strlen("job_mounts="), failure) != 0)
                return -1;
        } else if (strncmp(words[i], "network_interfaces=", strlen("network_interfaces=")) == 0) {
            if (parse_network_interfaces(arguments, words[i] + strlen("network_interfaces="),
                                         failure) != 0)
                return -1;
        } else if (strchr(words[i], '=') != NULL && words[i][0] != '/')
            return failure_of(failure, "plugstack.conf: unknown argument of chroot.so", words[i]);
        else if (parse_root(arguments, words[i], failure) != 0)
            return -1;
    }
    if (arguments->root[0] == '\0')
        return failure_of(failure, "plugstack.conf", "chroot.so needs the path of the root");
    return 0;
}
