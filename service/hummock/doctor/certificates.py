"""The certificate that a start would show: whether it fits its key, and how long it is valid."""

from __future__ import annotations

import shlex
import ssl
from contextlib import suppress

from hummock.core.errors import StartError
from hummock.doctor.finding import Case, Check, Finding, error, fine, warning
from hummock.rpc.tls import Tls, TlsFiles

_DAY_S = 86_400.0
_SOON_S = 14 * _DAY_S


def has_a_valid_certificate(case: Case) -> Finding | None:
    """Whether clients will take the certificate, and for at least two weeks more."""
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


CHECKS: tuple[Check, ...] = (has_a_valid_certificate,)


def _shown_to_a_client(files: TlsFiles) -> dict[str, object]:
    """The certificate as a client sees it that trusts it for itself. A connection in memory: no socket is opened.

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
