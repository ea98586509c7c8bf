"""HTTP with JSON alongside gRPC, for scripts and pages: unary calls by the Connect protocol.

A call is forwarded to the service's own gRPC address, so that admission, rules and statuses are those of every other
call.
"""

from __future__ import annotations

import base64
import socket
from collections.abc import Iterable, Mapping
from threading import Thread
from typing import Any

import grpc
import uvicorn
from google.protobuf import json_format
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from google.rpc import status_pb2
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from hummock.core.access import TokenInvalid
from hummock.core.errors import StartError
from hummock.local_http import Bodies, BodyRefused, BrokenOff, config_of, ends
from hummock.rpc.interceptor import AUTHORIZATION, OVER_HTTP, TRACE_KEYS, Interceptor
from hummock.rpc.listening import CORE_RECEIVE_BYTES, Address, TcpAddress
from hummock.rpc.policy import SERVICES, name_of
from hummock.rpc.status import LARGEST_REPLY_BYTES, to_proto
from hummock.rpc.tls import Tls

_DRAIN_S = 5
_BACKLOG = 128
_DETAILS = "grpc-status-details-bin"

_HTTP_STATUS = {
    grpc.StatusCode.CANCELLED: 499,
    grpc.StatusCode.INVALID_ARGUMENT: 400,
    grpc.StatusCode.DEADLINE_EXCEEDED: 504,
    grpc.StatusCode.NOT_FOUND: 404,
    grpc.StatusCode.ALREADY_EXISTS: 409,
    grpc.StatusCode.PERMISSION_DENIED: 403,
    grpc.StatusCode.RESOURCE_EXHAUSTED: 429,
    grpc.StatusCode.FAILED_PRECONDITION: 400,
    grpc.StatusCode.ABORTED: 409,
    grpc.StatusCode.OUT_OF_RANGE: 400,
    grpc.StatusCode.UNIMPLEMENTED: 501,
    grpc.StatusCode.UNAVAILABLE: 503,
    grpc.StatusCode.UNAUTHENTICATED: 401,
}
"""HTTP statuses of the Connect protocol; codes that are not listed give 500."""


class Refused(Exception):
    """A request that does not become a call."""

    def __init__(self, code: grpc.StatusCode, message: str, http_status: int | None = None) -> None:
        super().__init__(message)
        self.response = error_response(code, message, (), http_status)


class JsonHttp:
    """Answers over HTTP for the service at an address, on a thread of its own. Loopback alone."""

    def __init__(
        self,
        host: str,
        port: int,
        *,
        also_named: Iterable[str] = (),
        tls: Tls | None = None,
        interceptor: Interceptor | None = None,
    ) -> None:
        """Open the listening socket.

        Args:
            host: An address of loopback.
            port: 0 takes a free one.
            also_named: Allowed host names in addition to localhost, with or without a port.
            tls: Certificate and key; None means plaintext.
            interceptor: Authenticates callers before their bodies are read; None leaves that to the service.

        Raises:
            StartError: The address cannot be used.
        """
        self._listener = _listen(host, port)
        self._also_named = frozenset(name.lower() for name in also_named)
        self._tls = tls
        self._interceptor = interceptor or Interceptor()
        self._channel: grpc.Channel | None = None
        self._server: uvicorn.Server | None = None
        self._thread: Thread | None = None

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self._listener.getsockname()[1])

    @property
    def url(self) -> str:
        """Base URL of the listener."""
        return f"{self._scheme}127.0.0.1:{self.port}"

    @property
    def _scheme(self) -> str:
        return "http://" if self._tls is None else "https://"

    def start(self, service: Address) -> None:
        """Begins to answer; the service lets calls in."""
        self._channel = grpc.insecure_channel(
            str(service),
            options=[
                ("grpc.max_send_message_length", CORE_RECEIVE_BYTES),
                ("grpc.max_receive_message_length", LARGEST_REPLY_BYTES),
            ],
        )
        tls = self._tls
        here = {f"{name}:{self.port}" for name in ("127.0.0.1", "localhost", "[::1]", *self._also_named)}
        config = config_of(
            app_of(self._channel, self._also_named | here, self._interceptor, self._scheme),
            _DRAIN_S,
            ssl_context_factory=None if tls is None else lambda *_: tls.for_http(),
            lifespan="off",
        )
        self._server = uvicorn.Server(config)
        # Not on the main thread, so that it leaves signals to the service.
        self._thread = Thread(target=self._server.run, kwargs={"sockets": [self._listener]}, name="http", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Let running requests finish, and close."""
        if self._server is not None and self._thread is not None:
            self._server.should_exit = True
            self._thread.join()
        if self._channel is not None:
            self._channel.close()
        self._listener.close()


def app_of(channel: grpc.Channel, names: frozenset[str], interceptor: Interceptor, scheme: str) -> Starlette:
    """Build the application that answers each unary method of the contract.

    Args:
        channel: To the service.
        names: Allowed names in a request's Host. They keep out pages whose own name resolves to this machine.
        interceptor: Authenticates callers by their tokens.
        scheme: Scheme in the Origin of pages that this address itself serves.
    """
    methods = {name_of(method): method for service in SERVICES for method in service.methods}
    bodies = Bodies()

    async def answer(request: Request) -> Response:
        headers, is_read = request.headers, False
        try:
            _check_caller(headers, names, scheme)
            method = _method(methods, request)
            # Before the body is read; the service checks it again.
            interceptor.caller_of(headers.get(AUTHORIZATION), is_over_http=True)
            async with bodies.whole(request.receive) as body:
                is_read = True
                sent = await run_in_threadpool(_parsed, method, body)
                del body
            reply = await run_in_threadpool(_call, channel, method, sent, headers)
            response = Response(json_format.MessageToJson(reply, indent=None), media_type="application/json")
        except Refused as refused:
            response = refused.response
        except grpc.RpcError as error:
            response = _failed(error)
        except TokenInvalid as error:
            status = to_proto(error)
            response = error_response(grpc.StatusCode.UNAUTHENTICATED, status.message, tuple(status.details))
        except BodyRefused as refused:
            response = error_response(grpc.StatusCode.RESOURCE_EXHAUSTED, str(refused), (), refused.http_status)
        except BrokenOff:
            response = Response(status_code=400)  # the client is gone
        return response if is_read else ends(response, headers)

    return Starlette(routes=[Route("/{path:path}", answer, methods=["POST"])])


def error_response(
    code: grpc.StatusCode, message: str, details: tuple[Any, ...], http_status: int | None = None
) -> JSONResponse:
    """An error as Connect writes it."""
    word = "canceled" if code is grpc.StatusCode.CANCELLED else code.name.lower()
    said: dict[str, Any] = {"code": word, "message": message}
    if details:
        said["details"] = [_detail(one) for one in details]
    return JSONResponse(said, status_code=http_status or _HTTP_STATUS.get(code, 500))


def _detail(packed: Any) -> dict[str, Any]:
    """The packed message, together with a readable form."""
    shown = json_format.MessageToDict(packed)
    shown.pop("@type", None)
    value = base64.b64encode(packed.value).decode("ascii").rstrip("=")
    return {"type": packed.TypeName(), "value": value, "debug": shown}


def _failed(error: Any) -> JSONResponse:
    status = status_pb2.Status()
    for key, value in error.trailing_metadata() or ():
        if key == _DETAILS:
            status.ParseFromString(value)
    return error_response(error.code(), error.details() or "", tuple(status.details))


def _check_caller(headers: Mapping[str, str], names: frozenset[str], scheme: str) -> None:
    """Raises: Refused: the Host is not allowed, or the Origin is a page of another host."""
    origin = headers.get("origin")
    if headers.get("host", "").lower() not in names:
        raise Refused(
            grpc.StatusCode.PERMISSION_DENIED,
            "the Host is not this service's; call it as 127.0.0.1 or localhost, or name it in http_hosts",
        )
    if origin is not None and origin.lower().removeprefix(scheme) not in names:
        raise Refused(grpc.StatusCode.PERMISSION_DENIED, "pages of other origins may not call")


def _method(methods: Mapping[str, MethodDescriptor], request: Request) -> MethodDescriptor:
    """Raises: Refused."""
    path = request.scope["path"]
    method = methods.get(path)
    if method is None:
        raise Refused(grpc.StatusCode.UNIMPLEMENTED, f"{path} is no method of the contract", 404)
    if method.client_streaming or method.server_streaming:
        raise Refused(grpc.StatusCode.UNIMPLEMENTED, f"{method.name} is a stream; those are for gRPC alone")
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Refused(grpc.StatusCode.INVALID_ARGUMENT, "the Content-Type must be application/json", 415)
    return method


def _parsed(method: MethodDescriptor, body: bytes) -> Message:
    """Raises: Refused."""
    message: Message = GetMessageClass(method.input_type)()
    try:
        json_format.Parse(body.decode("utf-8"), message)
    except (json_format.ParseError, UnicodeDecodeError, RecursionError) as error:
        raise Refused(grpc.StatusCode.INVALID_ARGUMENT, f"the body is no {method.input_type.name}: {error}") from error
    return message


def _call(channel: grpc.Channel, method: MethodDescriptor, sent: Message, headers: Headers) -> Message:
    """Raises: Refused, grpc.RpcError."""
    call: grpc.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(name_of(method))
    reply: Message = GetMessageClass(method.output_type)()
    reply.ParseFromString(call(sent.SerializeToString(), timeout=_timeout_s(headers), metadata=_metadata(headers)))
    return reply


def _metadata(headers: Headers) -> tuple[tuple[str, str], ...]:
    """Metadata of the forwarded call. Raises: Refused: a header is not printable ASCII, which gRPC requires."""
    metadata = [(OVER_HTTP, "1")]
    for key in (AUTHORIZATION, *TRACE_KEYS):
        for value in headers.getlist(key):
            if not (value.isascii() and value.isprintable()):
                code = grpc.StatusCode.UNAUTHENTICATED if key == AUTHORIZATION else grpc.StatusCode.INVALID_ARGUMENT
                raise Refused(code, f"the header {key} has characters that are not printable ASCII")
            metadata.append((key, value))
    return tuple(metadata)


def _timeout_s(headers: Mapping[str, str]) -> float | None:
    """Raises: Refused."""
    given = headers.get("connect-timeout-ms")
    if given is None:
        return None
    if not (given.isascii() and given.isdecimal() and len(given) <= 10):
        raise Refused(grpc.StatusCode.INVALID_ARGUMENT, "Connect-Timeout-Ms is not a number of milliseconds")
    return int(given) / 1000


def _listen(host: str, port: int) -> socket.socket:
    """Raises: StartError."""
    address = "127.0.0.1" if host == "localhost" else host
    if not TcpAddress(host=address, port=port).is_loopback:
        raise StartError(f"HTTP is answered on loopback alone; {host} can be reached by other machines")
    listener = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, port))
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise StartError(f"HTTP cannot listen on {host}:{port}: {error.strerror}; choose another http_port") from error
    return listener
