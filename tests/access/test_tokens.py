"""Tokens in their file, scopes, and what the authenticator makes of them."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hummock.access.authenticator import Authenticator, Exposure
from hummock.access.tokens import TokenFile, TokenRefused, TokensUnreadable
from hummock.core.access import LOCAL, Scope, ScopeMissing, TokenInvalid, Verb
from tests.fakes import FakeClock

READ_SHOP = [Scope.parse("shop:read")]


def bearer(text: str) -> str:
    return f"Bearer {text}"


@pytest.mark.parametrize(
    ("pattern", "covered", "others"),
    [
        ("*", ["shop", "世界", "a\nb"], []),
        ("shop", ["shop"], ["shops", "sho", "SHOP", ""]),
        ("shop-*", ["shop-", "shop-a*b"], ["shop", "xshop-a"]),
        ("a*b*", ["ab", "a.bc", "a*b*"], ["ba", "a"]),
        ("a.c", ["a.c"], ["abc"]),
        ("[a]", ["[a]"], ["a"]),
    ],
)
def test_a_pattern_covers_what_it_says(pattern: str, covered: list[str], others: list[str]) -> None:
    scope = Scope(pattern=pattern, verb=Verb.READ)
    assert all(scope.covers(project) for project in covered)
    assert not any(scope.covers(project) for project in others)


@pytest.mark.long
@given(st.text(min_size=1, max_size=50).filter(lambda name: "*" not in name), st.text(max_size=50))
def test_a_name_without_a_star_covers_itself_alone(name: str, other: str) -> None:
    scope = Scope(pattern=name, verb=Verb.READ)
    assert scope.covers(name)
    assert scope.covers(other) == (other == name)


@pytest.mark.parametrize("text", ["", "shop", ":read", "shop:", "shop:write", "x" * 257 + ":read"])
def test_what_is_no_scope_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="scope"):
        Scope.parse(text)


def test_a_scope_reads_as_it_was_written() -> None:
    for text in ("shop-*:learn", "a:b:read", "*:admin"):
        assert str(Scope.parse(text)) == text


def test_only_the_hash_of_a_token_is_kept_and_the_owner_alone_may_read_it(tmp_path: Path) -> None:
    """X11."""
    file = TokenFile(tmp_path / "data")
    os.umask(os.umask(0o000))
    made, text = file.create("ci", READ_SHOP, now_s=100.0)
    kept = file.path.read_text(encoding="utf-8")
    secret = text.rpartition(made.id)[2].removeprefix("_")
    assert len(secret) == 43
    assert secret not in kept
    assert file.path.stat().st_mode & 0o777 == 0o600
    assert file.path.parent.stat().st_mode & 0o077 == 0
    assert file.read() == (made,)


def test_a_name_is_free_again_when_its_token_was_revoked(tmp_path: Path) -> None:
    file = TokenFile(tmp_path)
    first, _ = file.create("ci", READ_SHOP, now_s=1.0)
    with pytest.raises(TokenRefused, match="already"):
        file.create("ci", READ_SHOP, now_s=2.0)
    assert file.revoke("ci", now_s=3.0).id == first.id
    second, _ = file.create("ci", READ_SHOP, now_s=4.0)
    assert file.revoke(second.id, now_s=5.0).id == second.id
    with pytest.raises(TokenRefused, match="no token ci"):
        file.revoke("ci", now_s=6.0)
    assert [each.state(7.0) for each in file.read()] == ["revoked", "revoked"]


@pytest.mark.parametrize(
    ("name", "scopes", "expires_s", "said"),
    [
        *((name, READ_SHOP, None, "name") for name in ("", "a b", "x" * 65, "../x")),
        ("a", [], None, "scope"),
        ("a", READ_SHOP, 1.0, "expired already"),
    ],
)
def test_a_token_needs_a_name_a_scope_and_a_future(
    tmp_path: Path, name: str, scopes: list[Scope], expires_s: float | None, said: str
) -> None:
    with pytest.raises(TokenRefused, match=said):
        TokenFile(tmp_path).create(name, scopes, now_s=1.0, expires_s=expires_s)
    assert not TokenFile(tmp_path).path.exists()


def test_of_many_that_are_made_at_once_none_is_lost(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda n: TokenFile(tmp_path).create(f"t{n}", READ_SHOP, now_s=1.0), range(40)))
    assert {each.name for each in TokenFile(tmp_path).read()} == {f"t{n}" for n in range(40)}


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"version": 1}', '{"version": 2, "tokens": []}', '{"version":1,"tokens":[1]}']
)
def test_a_damaged_file_is_said_and_never_replaced(tmp_path: Path, text: str) -> None:
    file = TokenFile(tmp_path)
    file.path.write_text(text)
    file.path.chmod(0o600)
    with pytest.raises(TokensUnreadable, match=r"damaged|version"):
        file.create("a", READ_SHOP, now_s=1.0)
    assert file.path.read_text() == text


def test_a_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    file = TokenFile(tmp_path)
    file.create("a", READ_SHOP, now_s=1.0)
    file.path.chmod(0o640)
    with pytest.raises(TokensUnreadable, match="chmod 600"):
        file.read()


def test_a_token_is_known_from_the_next_call_on_until_it_is_revoked_or_expires(tmp_path: Path) -> None:
    """X11."""
    clock = FakeClock()
    authenticator = Authenticator(tmp_path, Exposure.MACHINE, clock.now)
    assert authenticator.caller(None) == LOCAL
    file = TokenFile(tmp_path)
    _, short = file.create("short", READ_SHOP, clock.now(), clock.now() + 60)
    _, text = file.create("long", READ_SHOP, clock.now())
    assert authenticator.caller(bearer(text)).name == "long"
    assert authenticator.caller(bearer(short)).name == "short"
    with pytest.raises(TokenInvalid, match="asks for a token"):
        authenticator.caller(None)
    clock.move(60)
    with pytest.raises(TokenInvalid, match="token short expired at"):
        authenticator.caller(bearer(short))
    file.revoke("long", clock.now())
    with pytest.raises(TokenInvalid, match="not known here, or was revoked"):
        authenticator.caller(bearer(text))
    # The last one was revoked, and the authenticator stays shut.
    with pytest.raises(TokenInvalid, match="asks for a token"):
        authenticator.caller(None)


def test_what_is_no_token_is_unknown(tmp_path: Path) -> None:
    made, text = TokenFile(tmp_path).create("a", READ_SHOP, now_s=1.0)
    authenticator = Authenticator(tmp_path, Exposure.MACHINE)
    for wrong in (
        "",
        "Bearer",
        bearer(""),
        bearer(text + "x"),
        bearer(text[:-1]),
        f"Basic {text}",
        text,
        bearer(f"hmk_{made.id}_"),
        bearer(made.digest),
        bearer(f"hmk_{made.id}_{made.digest}"),
        bearer(text.upper()),
    ):
        with pytest.raises(TokenInvalid, match="not known here"):
            authenticator.caller(wrong)
    assert authenticator.caller(f"bearer {text}").name == "a"


@pytest.mark.parametrize(
    ("exposure", "over_http", "without", "with_tokens"),
    [
        (Exposure.OWNER, False, True, True),
        (Exposure.OWNER, True, True, False),
        (Exposure.MACHINE, False, True, False),
        (Exposure.NETWORK, False, False, False),
    ],
)
def test_where_tokens_count(
    tmp_path: Path, exposure: Exposure, over_http: bool, without: bool, with_tokens: bool
) -> None:
    authenticator = Authenticator(tmp_path, exposure)

    def is_let_in() -> bool:
        try:
            return authenticator.caller(None, is_over_http=over_http) == LOCAL
        except TokenInvalid:
            return False

    assert is_let_in() == without
    TokenFile(tmp_path).create("a", READ_SHOP, now_s=1.0)
    assert is_let_in() == with_tokens


def test_a_wrong_token_is_refused_where_none_would_be_asked_for(tmp_path: Path) -> None:
    with pytest.raises(TokenInvalid, match="not known here"):
        Authenticator(tmp_path, Exposure.OWNER).caller(bearer("hmk_00_x"))


@pytest.mark.parametrize("harm", ["damaged", "vanished", "open"])
def test_a_file_that_is_harmed_lets_nobody_in(tmp_path: Path, harm: str) -> None:
    file = TokenFile(tmp_path)
    _, text = file.create("a", READ_SHOP, now_s=1.0)
    authenticator = Authenticator(tmp_path, Exposure.MACHINE)
    assert authenticator.caller(bearer(text)).name == "a"
    kept = file.path.read_bytes()
    if harm == "vanished":
        file.path.unlink()
    elif harm == "open":
        file.path.chmod(0o666)
    else:
        file.path.write_bytes(kept[:-5])
    for sent in (None, bearer(text)):
        with pytest.raises(TokenInvalid):
            authenticator.caller(sent)
    file.path.write_bytes(kept)
    file.path.chmod(0o600)
    assert authenticator.caller(bearer(text)).name == "a"


def test_a_verb_allows_those_before_it_and_a_refusal_says_nothing_of_what_there_is(tmp_path: Path) -> None:
    _, text = TokenFile(tmp_path).create("a", [Scope.parse("shop:learn"), Scope.parse("docs-*:read")], now_s=1.0)
    caller = Authenticator(tmp_path, Exposure.MACHINE).caller(bearer(text))
    caller.require(Verb.READ, ["shop"])
    caller.require(Verb.LEARN, ["shop"])
    caller.require(Verb.READ, ["docs-a", "shop"])
    caller.require(Verb.READ, [])
    for verb, projects in [
        (Verb.ADMIN, ["shop"]),
        (Verb.LEARN, ["docs-a"]),
        (Verb.READ, ["shop", "other"]),
        (Verb.ADMIN, []),
    ]:
        with pytest.raises(ScopeMissing, match="the token a may not"):
            caller.require(verb, projects)
    with pytest.raises(ScopeMissing, match="all projects"):
        caller.require_all(Verb.READ)


def test_the_file_is_json_that_people_can_read(tmp_path: Path) -> None:
    made, _ = TokenFile(tmp_path).create("ci", [Scope.parse("店-*:learn")], now_s=0.0, expires_s=86400.0)
    (kept,) = json.loads(TokenFile(tmp_path).path.read_text(encoding="utf-8"))["tokens"]
    assert kept == {
        "id": made.id, "name": "ci", "sha256": made.digest, "scopes": ["店-*:learn"],
        "created": "1970-01-01T00:00:00+00:00", "expires": "1970-01-02T00:00:00+00:00", "revoked": None,
    }  # fmt: skip
