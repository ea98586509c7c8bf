"""`hummock tokens`: who may call the service, kept in its data directory. It may run meanwhile, and knows at once."""

from __future__ import annotations

import json as json_lib
import time
from typing import Annotated, Any

import typer

from hummock.access.tokens import Token, TokenFile, shown_time
from hummock.core.access import Scope
from hummock_tools.cli.options import DataOption, TokenExpiresOption, data_dir_of, utf8
from hummock_tools.cli.output import new_table, note, print_line, print_page

app = typer.Typer(no_args_is_help=True, help="Make, list and revoke the tokens by which the service knows its callers.")

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="Of the token, for people.", callback=utf8)]
TokensJsonFlag = Annotated[bool, typer.Option("--json", help="Print it as JSON.")]


def _scope(text: str | Scope) -> Scope:
    if isinstance(text, Scope):
        return text
    try:
        return Scope.parse(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


@app.command("create")
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


@app.command("ls")
def ls(json: TokensJsonFlag = False, data: DataOption = None) -> None:
    """List the tokens, the newest last; a token itself is shown by nobody."""
    tokens = TokenFile(data_dir_of(data)).read()
    if json:
        print_line(json_lib.dumps([_shown(each) for each in tokens], ensure_ascii=False, indent=2))
        return
    table = new_table()
    for column in ("name", "id", "state", "scopes", "created", "expires"):
        table.add_column(column)
    for each in tokens:
        shown = _shown(each)
        cells = (each.name, each.id, shown["state"], ", ".join(shown["scopes"]), shown["created"], shown["expires"])
        table.add_row(*(cell or "-" for cell in cells))
    print_page(table, nothing="there are no tokens")


@app.command("revoke")
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
