"""The checks of `hummock doctor`: two tables of small functions, each of which names a command for a repair.

`OFFLINE` checks examine the directory, the machine and the settings, whether a service runs or not. `ONLINE` checks
examine the status of the service on this directory, and are skipped if none answers. The directory's content is checked
by the lists of `store/upkeep/check.py`: the quick ones here, all of them by `hummock fsck`.
"""

from __future__ import annotations

import os
import resource
import shlex
import ssl
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import hummock_kernels
from hummock import models
from hummock.core.errors import HummockError, StartError
from hummock.doctor import data_directory
from hummock.doctor.finding import Case, Finding, error, fine, warning
from hummock.rpc.tls import Tls, TlsFiles
from hummock.store import recorded_model
from hummock_client.v1 import admin_service_pb2 as pb
from hummock_kernels._cache_dir import choose_cache_dir

_DAY_S = 86_400.0
_SOON_S = 14 * _DAY_S
_ENOUGH_FILES = 4096
_TEMPORARY = "hummock-numba-"


def has_its_model(case: Case) -> Finding:
    """Check whether the embedding model is that of the directory, and installed undamaged."""
    recorded = _recorded(case)
    name = case.settings.model if case.settings.model != models.AUTO else recorded or models.AUTO
    if recorded is not None and name != recorded:
        return error(
            f"{case.data} has vectors of model {recorded}, and the settings name {name}: a start would be refused",
            f"hummock serve {case.its_data} --model {shlex.quote(recorded)}",
        )
    directory = case.settings.models_dir
    try:
        wanted = models.candidates(name, directory)
    except StartError as failure:
        return error(str(failure), "hummock models ls")
    here = models.that_will_do(wanted, directory)
    return _verified(case, wanted[0] if here is None else here)


def has_its_cross_encoder(case: Case) -> Finding | None:
    """Check that the cross-encoder is installed and undamaged, unless it is switched off."""
    if case.settings.cross_encoder == "off":
        return None
    try:
        model = models.find_reranker(case.settings.cross_encoder_model, case.settings.models_dir)
    except StartError as failure:
        return error(str(failure), "hummock models ls")
    return _verified(case, model)


def allows_open_files(case: Case) -> Finding:
    """Check whether a service may open a few thousand files: each connection needs one."""
    del case
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most == resource.RLIM_INFINITY or most >= _ENOUGH_FILES:
        return fine("as many files may be open as a service needs")
    return warning(
        f"a process may open {most} files, and each connection takes one: callers behind that are locked out",
        "ulimit -Hn 65536   # as root; LimitNOFILE=65536 for systemd",
    )


def keeps_compiled_kernels(case: Case) -> Finding:
    """Check whether compiled kernels are kept for the next start."""
    del case
    mend = "export NUMBA_CACHE_DIR=DIR && hummock warm"
    try:
        place = choose_cache_dir(Path(hummock_kernels.__file__).parent, os.environ)
    except OSError as failure:
        return warning(f"kernels are compiled at each start: {failure.strerror or failure}", mend)
    if place.name.startswith(_TEMPORARY) and place.parent == Path(tempfile.gettempdir()):
        return warning(f"compiled kernels can be kept in {place} alone, until it is cleaned", mend)
    named = os.environ.get("NUMBA_CACHE_DIR", "")
    if named and place not in (Path(named), Path(named).parent):
        return warning(f"NUMBA_CACHE_DIR {named} cannot be written; kernels are kept in {place}", mend)
    return fine(f"compiled kernels are kept in {place}")


def has_a_valid_certificate(case: Case) -> Finding | None:
    """Check whether clients will accept the certificate, for at least two more weeks."""
    certificate, key = case.settings.tls_certificate, case.settings.tls_key
    if certificate is None or key is None:
        return None
    show = f"openssl x509 -noout -subject -dates -in {shlex.quote(str(certificate))}"
    try:
        Tls(TlsFiles(certificate=certificate, key=key, client_ca=case.settings.tls_client_ca))
        shown = _shown_to_a_client(TlsFiles(certificate=certificate, key=key))
    except ssl.SSLCertVerificationError as failure:
        return error(f"clients refuse {certificate}: {failure.verify_message}", show)
    except StartError as failure:
        return error(str(failure), show)
    left_s = ssl.cert_time_to_seconds(str(shown["notAfter"])) - case.now_s
    said = f"{certificate} is valid for {left_s / _DAY_S:.0f} days"
    return warning(said, show) if left_s < _SOON_S else fine(said)


def answers(case: Case) -> Finding:
    """Check whether the service on the data directory answers at its address, and no other process does."""
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
        who = f"Hummock {case.status.version} over {case.status.storage.directory}"
    elif case.holder:
        return warning(
            f"the service at {case.address} does not say how it is: {case.refusal}",
            f"HUMMOCK_TOKEN=TOKEN hummock doctor {case.its_data}",
        )
    else:
        who = f"another process ({case.refusal})"
    elsewhere = f"hummock serve {case.its_data} --port PORT"
    return (warning if case.holder else error)(f"{case.address} is taken by {who}", elsewhere)


def is_this_version(case: Case, service: pb.GetStatusResponse) -> Finding:
    """Check whether the running version is the installed one."""
    if service.version == case.version:
        return fine(f"the service is Hummock {case.version}, as installed")
    return warning(
        f"the service is Hummock {service.version}, and {case.version} is installed",
        f"kill {case.holder} && hummock serve {case.its_data}" if case.holder else f"hummock serve {case.its_data}",
    )


def writes(case: Case, service: pb.GetStatusResponse) -> Finding:
    """Check whether the service accepts writes."""
    if service.storage.write_state == pb.WRITE_STATE_REFUSED:
        fault = service.storage.write_fault or "it does not say why"
        return error(f"the service stores nothing: {fault}", "hummock status")
    return fine("the service stores what it is given")


def has_no_damage(case: Case, service: pb.GetStatusResponse) -> Finding:
    """Check whether the service has found damaged memories."""
    if service.storage.damaged_count:
        return error(
            f"the service found {service.storage.damaged_count} memories damaged", f"hummock fsck {case.its_data}"
        )
    return fine("the service found no memory damaged")


def has_all_vectors(case: Case, service: pb.GetStatusResponse) -> Finding:
    """Check whether every memory has vectors, by which it is found by meaning."""
    failed, pending = service.embedding.failed_count, service.embedding.pending_count
    if failed:
        return warning(
            f"the model failed on {failed} memories, which are found by their words alone; the next start tries again",
            f"hummock models verify && hummock serve {case.its_data}",
        )
    if pending:
        return warning(
            f"{pending} memories wait for their vectors, and are found by their words alone meanwhile", "hummock status"
        )
    return fine("every memory has its vectors")


def has_the_model_it_should(case: Case, service: pb.GetStatusResponse) -> Finding:
    """Check whether the service recommends another model."""
    return warning(service.model.advice, "hummock models ls") if service.model.advice else fine("its model suits")


def trusts_its_clock(case: Case, service: pb.GetStatusResponse) -> Finding:
    """Check whether expired memories are removed on time: a clock that jumped is trusted after ten minutes."""
    ahead_s = service.storage.clock_ahead.ToNanoseconds() / 1e9
    if ahead_s:
        return warning(
            f"the clock of the service is {ahead_s:.0f} s ahead of when it was looked at last; "
            "nothing is forgotten for good until it has gone evenly for ten minutes",
            "date -u   # if it is wrong, set it now; if it is right, wait",
        )
    return fine("the clock of the service goes evenly")


OFFLINE: tuple[Callable[[Case], Finding | None], ...] = (
    data_directory.is_usable,
    data_directory.is_private,
    data_directory.has_tokens_that_can_be_read,
    data_directory.is_locked_by_who_has_it,
    data_directory.is_whole,
    data_directory.has_room_in_its_quota,
    data_directory.has_room_on_its_disk,
    data_directory.is_backed_up,
    has_its_model,
    has_its_cross_encoder,
    allows_open_files,
    keeps_compiled_kernels,
    has_a_valid_certificate,
    answers,
)
ONLINE: tuple[Callable[[Case, pb.GetStatusResponse], Finding], ...] = (
    is_this_version,
    writes,
    trusts_its_clock,
    has_no_damage,
    has_all_vectors,
    has_the_model_it_should,
)


def examine(case: Case) -> list[Finding]:
    """Findings of all checks in order; checks with nothing to examine are left out."""
    found = [_done(check, case) for check in OFFLINE]
    if case.service is not None:
        found += [check(case, case.service) for check in ONLINE]
    return [finding for finding in found if finding is not None]


def _done(check: Callable[[Case], Finding | None], case: Case) -> Finding | None:
    try:
        return check(case)
    except HummockError as failure:
        return error(str(failure), "")
    except OSError as failure:
        where = failure.filename or "a file"
        return error(f"{where} cannot be looked at: {failure.strerror}", f"ls -ld {where}" if failure.filename else "")


def _verified(case: Case, model: models.Model) -> Finding:
    directory = case.settings.models_dir
    pull = f"hummock models pull {model.name} --models {shlex.quote(str(directory))}"
    if not models.is_here(model, directory):
        return warning(f"model {model.name} is not in {directory}; a start fetches it", pull)
    try:
        for part in model.parts:
            models.verify(part, directory / part.name)
    except StartError as failure:
        return error(str(failure), pull)
    return fine(f"model {model.name} is as it was published")


def _recorded(case: Case) -> str | None:
    """Name of the model of the directory's vectors; None if it has none, or cannot be read."""
    try:
        return recorded_model(case.data, is_in_use=bool(case.holder))
    except StartError:
        return None


def _shown_to_a_client(files: TlsFiles) -> dict[str, object]:
    """The certificate as seen by a client that trusts it, over a connection in memory without sockets.

    Raises: StartError; ssl.SSLCertVerificationError.
    """
    trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trusting.check_hostname = False
    trusting.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    trusting.load_verify_locations(files.certificate)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = Tls(files).for_http().wrap_bio(to_server, to_client, server_side=True)
    client = trusting.wrap_bio(to_client, to_server)
    for side in (client, server, client):
        with suppress(ssl.SSLWantReadError):
            side.do_handshake()
    return dict(client.getpeercert() or {})
