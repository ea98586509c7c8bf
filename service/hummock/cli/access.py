"""`hummock tokens`, who may call the service, and `hummock audit`, the log of who did; both while it runs."""

from __future__ import annotations

import json as json_lib
import time
from dataclasses import asdict
from typing import Annotated, Any

import typer

from hummock.access.tokens import Token, TokenFile, shown_time
from hummock.core.access import Scope
from hummock_tools.cli.connection import CommandFailed
from hummock_tools.cli.options import DataOption, TokenExpiresOption, data_dir_of, utf8
from hummock_tools.cli.output import new_table, note, print_line, print_page, warn

tokens = typer.Typer(
    no_args_is_help=True, help="Make, list and revoke the tokens by which the service knows its callers."
)
audit = typer.Typer(no_args_is_help=True, help="Look after the audit log of a data directory.")

_SHOWN_PROBLEMS = 20
NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="Of the token, for people.", callback=utf8)]
TokensJsonFlag = Annotated[bool, typer.Option("--json", help="Print it as JSON.")]


def _scope(text: str | Scope) -> Scope:
    if isinstance(text, Scope):
        return text
    try:
        return Scope.parse(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


@tokens.command("create")
def create(
    name: NameArgument,
    scopes: Annotated[
        list[Scope],
        typer.Option(
            "--scope",
            metavar="PROJECT:VERB",
            parser=_scope,
            help="What it allows: read, learn (and read) or admin (all), where * stands for anything; repeatable.",
        ),
    ],
    expires: TokenExpiresOption = None,
    json: TokensJsonFlag = False,
    data: DataOption = None,
) -> None:
    """Make a token, and show it: this once, for only its hash is kept."""
    file = TokenFile(data_dir_of(data))
    had_any = bool(file.read())
    made, text = file.create(name, scopes, time.time(), None if expires is None else expires.timestamp())
    if json:
        print_line(json_lib.dumps({**_shown(made), "token": text}, ensure_ascii=False))
    else:
        print_line(text)
    note(f"give it to the caller as HUMMOCK_TOKEN, or in a file of mode 600 that HUMMOCK_TOKEN_FILE names; {file.path}")
    if not had_any:
        note("it is the first one: from now on every call over a port needs a token, from this machine too")


@tokens.command("ls")
def ls(json: TokensJsonFlag = False, data: DataOption = None) -> None:
    """List the tokens, the newest last; a token itself is shown by nobody."""
    found = TokenFile(data_dir_of(data)).read()
    if json:
        print_line(json_lib.dumps([_shown(each) for each in found], ensure_ascii=False, indent=2))
        return
    table = new_table()
    for column in ("name", "id", "state", "scopes", "created", "expires"):
        table.add_column(column)
    for each in found:
        shown = _shown(each)
        cells = (each.name, each.id, shown["state"], ", ".join(shown["scopes"]), shown["created"], shown["expires"])
        table.add_row(*(cell or "-" for cell in cells))
    print_page(table, nothing="there are no tokens")


@tokens.command("revoke")
def revoke(name: NameArgument, json: TokensJsonFlag = False, data: DataOption = None) -> None:
    """End a token, by its name or id: the next call with it is refused, and streams that it opened end."""
    revoked = TokenFile(data_dir_of(data)).revoke(name, time.time())
    if json:
        print_line(json_lib.dumps(_shown(revoked), ensure_ascii=False))
    else:
        print_line(f"revoked {revoked.name} ({revoked.id})")


def _shown(token: Token) -> dict[str, Any]:
    return {
        "id": token.id,
        "name": token.name,
        "state": token.state(time.time()),
        "scopes": [str(scope) for scope in token.scopes],
        "created": shown_time(token.created_s),
        "expires": shown_time(token.expires_s),
        "revoked": shown_time(token.revoked_s),
    }


@audit.command("verify")
def verify(
    head: Annotated[
        str, typer.Option("--head", metavar="HASH", help="A head that was noted before; it must still be there.")
    ] = "",
    json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False,
    data: DataOption = None,
) -> None:
    """Read the whole audit log and look whether lines were removed or changed.

    Who removes the last lines removes no link: note the head that this prints, elsewhere, and give it the next time.
    """
    # Here, as it brings the logging of the server, which other commands run without.
    from hummock.access.audit import verify as read_all

    directory = data_dir_of(data)
    try:
        verdict = read_all(directory, head)
    except OSError as error:
        raise CommandFailed(f"{error.filename or directory} cannot be read: {error.strerror}") from error
    if json:
        print_line(json_lib.dumps(asdict(verdict)))
    else:
        print_line(f"{verdict.lines} lines, {verdict.first} to {verdict.last}, head {verdict.head}")
    for problem in verdict.problems[:_SHOWN_PROBLEMS]:
        warn(problem)
    if verdict.problems:
        raise CommandFailed(f"{len(verdict.problems)} things are wrong with the audit log of {directory}")
