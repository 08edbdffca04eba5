"""Reasons about slurmdbd, its database and the registration of a cluster."""

from __future__ import annotations

from penstock.catalog.condition_reason import NOTHING, PERSON, WAIT, ConditionReason


class AccountingReason(ConditionReason):
    """Reasons about accounting."""

    NOT_FOUND = (
        "AccountingNotFound",
        "The Accounting in spec.accountingRef does not exist.",
        "Create the Accounting, or remove spec.accountingRef.",
        PERSON,
    )
    WAITING = (
        "WaitingForAccounting",
        "slurmctld waits for slurmdbd at its first start.",
        "Read the condition of the Accounting.",
    )
    CREATING_DATABASE = "CreatingDatabase", "The embedded database is being created.", WAIT
    DATABASE_NOT_SERVED = (
        "DatabaseNotServed",
        "mariadbOperator is declared, and the kinds of mariadb-operator are not installed.",
        "Install mariadb-operator, or declare another database.",
        PERSON,
    )
    NOT_CREATED = (
        "NotCreated",
        "The API server rejects the objects for mariadb-operator.",
        "Remove the cause in the API server's words.",
        PERSON,
    )
    WAITING_FOR_DATABASE = (
        "WaitingForDatabase",
        "slurmdbd starts, or its database is not ready yet.",
        WAIT,
    )
    DATABASE_REFUSES = (
        "DatabaseRefuses",
        "The database rejects slurmdbd: user, password, database or host.",
        "Correct the login, or grant the rights in the database.",
        PERSON,
    )
    DATABASE_UNREACHABLE = (
        "DatabaseUnreachable",
        "slurmdbd does not reach its database. slurmctld keeps the records until then.",
        "Start the database, or correct its address.",
        PERSON,
    )
    DATABASE_ANSWERS = "DatabaseAnswers", "slurmdbd works with its database.", NOTHING
    NOT_ASKED = (
        "NotAsked",
        "The pod of another operator does not report the state of its database.",
        NOTHING,
    )
    NOT_RUNNING = (
        "SlurmdbdNotRunning",
        "slurmdbd does not run, so the state of its database is not known.",
        "Read the condition Ready of the same object.",
    )
    PASSWORD_UNUSABLE = (
        "PasswordUnusable",
        "slurmdbd.conf cannot have the database password.",
        "Choose a password without the character that the message names.",
        PERSON,
    )
    USER_MISSING = (
        "UserMissing",
        "The database has no user in the spec.",
        "Write the database user into the field of the message.",
        PERSON,
    )
    REGISTRATION_UNKNOWN = (
        "RegistrationUnknown",
        "Whether slurmdbd has the cluster registered is not known.",
        WAIT,
    )
    REGISTERED = "Registered", "slurmdbd has the cluster registered.", NOTHING
    NOT_REGISTERED = (
        "NotRegistered",
        "slurmdbd does not have the cluster registered, so it keeps no records of its jobs.",
        "Wait for two reconfigures; then read the logs of slurmctld and slurmdbd.",
        PERSON,
    )
    ACCOUNTING_NOT_REGISTERED = (
        "AccountingNotRegistered",
        "As NotRegistered, in the condition Ready.",
        "Wait for two reconfigures; then read the logs of slurmctld and slurmdbd.",
        PERSON,
    )
