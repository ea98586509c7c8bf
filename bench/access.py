"""Part `access`: what a token and TLS add to a recall."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import grpc

from bench.asking import RECALL, TAG, WARM_UP_CALLS, Latency, check_replies, recall_messages
from bench.command import Options
from bench.report import Findings, Row
from bench.service import Bench
from bench.stores import A, Setting
from hummock.access.tokens import TokenFile
from hummock.core.access import Scope

PART = "access"
_LIMIT = 3.0
_CALL_S = 60.0
_PERCENT = 100
_WHAT = "one project of A: recall over gRPC, one client; what a token and TLS add, two services in turns, p50"
_ONE = Setting(name="access", memories=A.memories // A.projects, projects=1)

Metadata = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class InTurns:
    """Seconds of the same calls to two services, call by call."""

    plain_s: Sequence[float]
    guarded_s: Sequence[float]

    @property
    def added_percent(self) -> float:
        """The median of what a call took longer, in percent of the plain p50; below 0 where chance has it so."""
        added_s = median(after - before for before, after in zip(self.plain_s, self.guarded_s, strict=True))
        return _PERCENT * added_s / median(self.plain_s)


def measure(options: Options) -> Findings:
    """Measures one store behind a service in the clear, and behind one with TLS and tokens."""
    if shutil.which("openssl") is None:
        return Findings(part=PART, skipped=("openssl is missing, which makes the certificate",))
    filled = options.stores.filled(_ONE)
    asked = recall_messages(filled.corpus, range(options.queries + WARM_UP_CALLS), TAG)
    with filled.copied() as copied:
        credentials, metadata = _guard(copied.bench)
        with filled.bench.serving() as plain, copied.bench.serving(credentials=credentials) as guarded:
            found = in_turns(caller(plain.channel), caller(guarded.channel, metadata), asked)
    return Findings(
        part=PART,
        rows=(Row.at_most(_WHAT, _LIMIT, found.added_percent, "%"),),
        figures=(
            ("in the clear, without tokens", Latency.of(found.plain_s).line()),
            ("TLS and a token", Latency.of(found.guarded_s).line()),
        ),
        not_measured=("handshakes: a client keeps its connection", "writes, to which the audit log adds a line"),
    )


def in_turns(plain: Callable[[bytes], bytes], guarded: Callable[[bytes], bytes], asked: Sequence[bytes]) -> InTurns:
    """Each request to both, who take turns in being the first; the warm-up does not count."""
    times_s: dict[int, list[float]] = {0: [], 1: []}
    pair = [(0, plain), (1, guarded)]
    for turn, request in enumerate(asked):
        for name, call in pair:
            began_s = time.perf_counter()
            reply = call(request)
            if turn >= WARM_UP_CALLS:
                times_s[name].append(time.perf_counter() - began_s)
                check_replies([reply])
        pair.reverse()
    return InTurns(plain_s=times_s[0], guarded_s=times_s[1])


def _guard(bench: Bench) -> tuple[grpc.ChannelCredentials, Metadata]:
    """Configures a service with TLS and a token; returns the credentials that a caller needs."""
    certificate, key = bench.directory / "tls.pem", bench.directory / "tls.key"
    names = "subjectAltName=DNS:localhost,IP:127.0.0.1"
    made = (
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=localhost",
    )
    files = ("-addext", names, "-keyout", str(key), "-out", str(certificate))
    subprocess.run(("openssl", "req", "-x509", *made, *files), check=True, capture_output=True)
    with (bench.directory / "hummock.toml").open("a", encoding="utf-8") as settings:
        settings.write(f"tls_certificate = {json.dumps(str(certificate))}\ntls_key = {json.dumps(str(key))}\n")
    _, token = TokenFile(bench.data_dir).create("bench", [Scope.parse("*:read")], time.time())
    return grpc.ssl_channel_credentials(Path(certificate).read_bytes()), (("authorization", f"Bearer {token}"),)


def caller(channel: grpc.Channel, metadata: Metadata = ()) -> Callable[[bytes], bytes]:
    """Recalls over a channel: bytes of the request to bytes of the reply."""
    call: grpc.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(RECALL)
    return lambda request: bytes(call(request, timeout=_CALL_S, metadata=metadata))
