"""The service that runs, if one does, as it says itself."""

from __future__ import annotations

from hummock.doctor.finding import Case, Check, Finding, error, fine, warning


def answers(case: Case) -> Finding:
    """Whether the service on the data directory answers where it should; nobody else may be there."""
    if case.service is not None:
        return fine(f"a service answers at {case.address}")
    if not case.is_listened_at:
        if not case.holder:
            return fine("no service runs")
        return warning(
            f"process {case.holder} has {case.data}, and nothing listens at {case.address}: it is starting, hangs, or "
            "was started with another address than these settings have",
            f"HUMMOCK_PORT=PORT hummock doctor {case.its_data}",
        )
    if case.status is not None:
        who = f"Hummock {case.status.version} over {case.status.directory}"
    elif case.holder:
        return warning(
            f"the service at {case.address} does not say how it is: {case.refusal}",
            f"HUMMOCK_TOKEN=TOKEN hummock doctor {case.its_data}",
        )
    else:
        who = f"another process ({case.refusal})"
    elsewhere = f"hummock serve {case.its_data} --port PORT"
    return (warning if case.holder else error)(f"{case.address} is taken by {who}", elsewhere)


def is_this_version(case: Case) -> Finding | None:
    """Whether what runs is what is installed."""
    if case.service is None:
        return None
    if case.service.version == case.version:
        return fine(f"the service is Hummock {case.version}, as installed")
    return warning(
        f"the service is Hummock {case.service.version}, and {case.version} is installed",
        f"kill {case.holder} && hummock serve {case.its_data}" if case.holder else f"hummock serve {case.its_data}",
    )


def writes(case: Case) -> Finding | None:
    """Whether it stores what it is given."""
    if case.service is None:
        return None
    if case.service.write_fault:
        return error(f"the service stores nothing: {case.service.write_fault}", "hummock status")
    return fine("the service stores what it is given")


def has_no_damage(case: Case) -> Finding | None:
    """Whether it met memories that are not as they were written."""
    if case.service is None:
        return None
    if case.service.damaged:
        return error(f"the service found {case.service.damaged} memories damaged", f"hummock fsck {case.its_data}")
    return fine("the service found no memory damaged")


def has_all_vectors(case: Case) -> Finding | None:
    """Whether every memory can be found by its meaning."""
    if case.service is None:
        return None
    if case.service.failed:
        return warning(
            f"the model failed on {case.service.failed} memories, which are found by their words alone; the next start "
            "tries again",
            f"hummock models verify && hummock serve {case.its_data}",
        )
    if case.service.pending:
        return warning(
            f"{case.service.pending} memories wait for their vectors, and are found by their words alone meanwhile",
            "hummock status",
        )
    return fine("every memory has its vectors")


def has_the_model_it_should(case: Case) -> Finding | None:
    """Whether the service would rather have another model."""
    if case.service is None:
        return None
    return warning(case.service.advice, "hummock models ls") if case.service.advice else fine("its model suits")


def trusts_its_clock(case: Case) -> Finding | None:
    """Whether memories are removed when they are due: a clock that jumped is believed ten minutes later."""
    if case.service is None:
        return None
    if case.service.clock_ahead_s:
        return warning(
            f"the clock of the service is {case.service.clock_ahead_s:.0f} s ahead of when it was looked at last; "
            "nothing is forgotten for good until it has gone evenly for ten minutes",
            "date -u   # if it is wrong, set it now; if it is right, wait",
        )
    return fine("the clock of the service goes evenly")


CHECKS: tuple[Check, ...] = (
    answers,
    is_this_version,
    writes,
    trusts_its_clock,
    has_no_damage,
    has_all_vectors,
    has_the_model_it_should,
)
