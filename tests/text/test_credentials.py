"""Secrets are found in the surroundings in which people leave them, and nothing else is."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random

import pytest

from hummock.core.memory import Draft, MemoryKind, Payload, SecretPolicy
from hummock.memories.preparation import screened
from hummock.text import credentials
from hummock.text.credentials import KEYS, redacted
from tests.text.secret_samples import KEYS as FORMS
from tests.text.secret_samples import samples

ROOT = Path(__file__).parents[2]
SAMPLES = samples(61, 440)


@pytest.mark.parametrize("kind", [*FORMS, "password", "assigned", "address"])
def test_98_of_100_secrets_of_each_kind_are_taken_out(kind: str) -> None:
    """X6."""
    of_kind = [one for one in SAMPLES if one.kind == kind]
    kept = [one for one in of_kind if one.secret in redacted(one.text).text]
    assert len(kept) <= len(of_kind) // 50, kept[:3]


@pytest.mark.parametrize("folder", ["service/hummock/rpc", "service/hummock/cli", "docs", "kernels"])
def test_less_than_one_line_of_100_is_taken_for_a_secret(folder: str) -> None:
    """X6."""
    paths = [path for path in (ROOT / folder).rglob("*") if path.suffix in {".py", ".md"}]
    lines = [line for path in paths for line in path.read_text().split("\n") if line.strip()]
    taken = [line for line in lines if redacted(line).kinds]
    assert lines
    assert len(taken) <= len(lines) // 100, taken[:3]


@pytest.mark.parametrize(
    ("text", "expected", "kinds"),
    [
        (
            "a = 'AKIAABCDEFGHIJKLMNOP'\npassword: hunter2\n密码：hunter3",
            "a = '[redacted: cloud key]'\npassword: [redacted: password]\n密码：[redacted: password]",
            {"cloud key": 1, "password": 2},
        ),
        # A private key that was cut off goes to its end; of an address the password alone goes.
        ("x\n-----BEGIN PRIVATE KEY-----\nMIIE\nabc", "x\n[redacted: private key]", {"private key": 1}),
        (
            "postgres://app:s3cr3t!@db:5432/x",
            "postgres://app:[redacted: password in an address]@db:5432/x",
            {"password in an address": 1},
        ),
    ],
    ids=["several", "a private key", "an address"],
)
def test_what_was_taken_out_is_named_and_counted(text: str, expected: str, kinds: dict[str, int]) -> None:
    """X6."""
    found = redacted(text)
    assert (found.text, found.kinds) == (expected, kinds)


@pytest.mark.parametrize(
    "line",
    [
        "password: str", 'password = getpass("Password: ")', "def f(password, token): ...", "max_tokens: 4096",
        "token = next(tokens)", 'api_key="YOUR-API-KEY"', "password=${DB_PASSWORD}", "self.token = token",
        "secret = os.environ['SECRET']", "key: value", "https://example.test/path?x=1", "token_count: 12",
        "postgres://user:password@localhost/x", "the password is wrong", "密码是必填项", "git@host:group/project.git",
        "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", "password: '********'",
    ],
)  # fmt: skip
def test_what_only_speaks_of_secrets_stays(line: str) -> None:
    assert redacted(line).text == line


JWT = f"eyJ{'a1-' * 9}.eyJ{'b2_' * 9}.{'c3' * 9}"


@pytest.mark.parametrize(
    "before",
    [
        "",
        "eyJ-",
        "eyJ" + "-_" * 40 + " ",
        "eyJ-." * 9000,
        "eyJ" + "a1" * 1500 + "-",
        "tide\n" * 3276,
        "eyJ-" * 4096 + " ",
    ],
)
def test_a_token_is_found_behind_what_only_begins_like_one(before: str) -> None:
    """Also across the pieces in which long texts are read; Chinese that follows without a space stays."""
    found = redacted(f"{before}{JWT}是新的")
    assert found.text.endswith("[redacted: jwt]是新的")
    assert found.kinds == {"jwt": 1}


PIECES = (
    *(one.text for one in SAMPLES[::9]), *(hint for one in KEYS for hint in one.triggers), JWT, "Bearer ab12" * 3,
    "APİ-KEY=a1b2c3d4e5f6", "acceſſ_key: 9f8e7d6c5b4a", "accountkey: 'a1b2c3d4e5f6'",
    "PASSWORD：", "pwd=a1b2c3d4e5f6", "://u:p4ss@h", "--token 9f8e7d6c5b4a", "密码是 hunter22", "eyJ", "tide",
    " ", "\n", "'", "[redacted: jwt]",
)  # fmt: skip


def test_the_look_for_hints_passes_over_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts put together of secrets, their parts and what stands between them, as if every hint were there."""
    random = Random(7)  # noqa: S311 # repeatable
    texts = ["".join(random.choices(PIECES, k=random.randint(1, 6))) for _ in range(400)]
    notes = [
        Draft(kind=MemoryKind.NOTE, payload=Payload(content=f"x{text}"), metadata=(("key", text),)) for text in texts
    ]
    said = [redacted(text) for text in texts], [screened(note, SecretPolicy.REDACT) for note in notes]
    monkeypatch.setattr(credentials, "holds_any", lambda words, text: True)
    every = {"://", *credentials._SAID_HINTS, *(hint for one in KEYS for hint in one.triggers)}
    monkeypatch.setattr(credentials, "_hints_in", lambda text: every)
    assert said == ([redacted(text) for text in texts], [screened(note, SecretPolicy.REDACT) for note in notes])


def test_taking_out_twice_changes_nothing() -> None:
    for one in SAMPLES:
        once = redacted(one.text).text
        assert redacted(once).text == once


@pytest.mark.parametrize(
    "pattern",
    [*(one.pattern for one in KEYS), credentials._ADDRESS, credentials._QUOTED, credentials._BARE, credentials._BEARER],
    ids=lambda pattern: pattern.pattern[:24],
)
def test_no_pattern_repeats_without_a_bound(pattern: re.Pattern[str]) -> None:
    """X10: what is bounded, or never gives back what it took, takes time that grows with the text's length alone."""
    plain = re.sub(r"\[(?:\\.|[^\]\\])*\]", "c", pattern.pattern)
    assert not re.search(r"(?<!\\)[*+]", plain.replace("*+", "").replace("}+", "}"))
