"""Finds and redacts secrets in text: keys, private keys, tokens and passwords, by their form.

The forms of keys are defined by their issuers and also listed in gitleaks' rules (MIT); the patterns are our own. Each
is bounded and only tried where its trigger was found, so the time is linear in the length of the text.
"""

from __future__ import annotations

import re
import sys
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Final, NamedTuple

from hummock.core.memory import SecretPolicy
from hummock.text.hint_words import HintWords
from hummock.text.normalise import REACH, holds_any, matches_from, replaced, substituted


class Detector(NamedTuple):
    """One kind of secret. The first group of `pattern` is redacted; without groups the whole match.

    `triggers` are texts one of which every match holds; those of `pattern` that ignores case are in lower case.
    A match has at most `reach` characters; with `begin`, it begins with that and may have any number.
    """

    kind: str
    triggers: tuple[str, ...]
    pattern: re.Pattern[str]
    reach: int = REACH
    begin: str = ""


def _key(kind: str, triggers: str, pattern: str, begin: str = "") -> Detector:
    # ASCII only: keys have no other characters, and Chinese text may follow a key without a space.
    bounded = re.compile(rf"(?a)(?<![A-Za-z0-9])(?:{pattern})(?![A-Za-z0-9])")
    return Detector(kind, tuple(triggers.split(" ")), bounded, begin=begin)


_PEM = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
    r"(?:[^-]|-(?!----))*+(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----)?"
)
_ADDRESS = re.compile(r"://[^\s:/?#@'\"<>]{0,64}+:([^\s/@'\"<>]{1,128}+)@")

_64: Final = "[A-Za-z0-9_-]"

KEYS: Final = (
    Detector("private key", ("PRIVATE KEY",), _PEM, sys.maxsize),
    _key("cloud key", "AKIA ASIA ABIA ACCA", r"A(?:KIA|SIA|BIA|CCA)[A-Z2-7]{16}"),
    _key("cloud key", "LTAI", r"LTAI[A-Za-z0-9]{12,24}"),
    _key("cloud key", "AKID", r"AKID[A-Za-z0-9]{32}"),
    _key("cloud key", "AIza", r"AIza[\w-]{35}"),
    _key("cloud key", "GOCSPX-", r"GOCSPX-[\w-]{28}"),
    _key("cloud key", "ya29.", r"ya29\.[\w-]{20,512}"),
    _key("cloud key", "dop_v1_ doo_v1_ dor_v1_", r"do[opr]_v1_[0-9a-f]{64}"),
    Detector("cloud key", ("AccountKey=",), re.compile(r"AccountKey=([A-Za-z0-9+/]{80,90}={0,2})")),
    _key("cloud key", "dapi", r"dapi[0-9a-f]{32}(?:-\d)?"),
    _key("cloud key", "hvs. hvb.", r"hv[sb]\.[\w-]{24,256}"),
    _key("git token", "ghp_ gho_ ghu_ ghs_ ghr_", r"gh[pousr]_[A-Za-z0-9]{36,255}"),
    _key("git token", "github_pat_", r"github_pat_\w{22,255}"),
    _key("git token", "glpat- glptt- gldt- glrt- glcbt-", r"gl(?:pat|ptt|dt|rt|cbt)-[\w.-]{20,128}"),
    _key("package token", "npm_", r"npm_[A-Za-z0-9]{36}"),
    _key("package token", "pypi-AgE", r"pypi-AgE[\w-]{50,1000}"),
    _key("payment key", "_live_ _test_ _prod_", r"[rs]k_(?:live|test|prod)_[A-Za-z0-9]{10,128}"),
    _key("payment key", "whsec_", r"whsec_[A-Za-z0-9+/=]{24,128}"),
    _key("payment key", "sq0", r"sq0(?:atp|csp)-[\w-]{22,64}"),
    _key("payment key", "shpat_ shpca_ shppa_ shpss_", r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}"),
    _key("model key", "sk-ant-", r"sk-ant-[\w-]{20,256}"),
    _key("model key", "sk-", r"sk-(?:proj-|svcacct-|admin-|or-v1-)?[A-Za-z0-9_]{3}[\w-]{17,256}"),
    _key("model key", "hf_", r"hf_[A-Za-z0-9]{30,64}"),
    _key("model key", "gsk_ xai-", r"(?:gsk_|xai-)[A-Za-z0-9]{40,128}"),
    _key("chat token", "xox", r"xox[abeoprs]-[A-Za-z0-9-]{10,256}"),
    _key("chat token", "xapp-", r"xapp-\d-[A-Za-z0-9-]{10,256}"),
    Detector("chat token", ("hooks.slack.com",), re.compile(r"hooks\.slack\.com/services/([A-Za-z0-9/]{20,80})")),
    _key("chat token", ":AA", r"\d{8,10}:AA[\w-]{33}"),
    _key("chat token", "iscord ISCORD", r"[MNO][A-Za-z0-9]{23,25}\.[\w-]{6}\.[\w-]{27,38}"),
    _key("mail key", "SG.", r"SG\.[\w-]{22}\.[\w-]{43}"),
    _key("mail key", "key-", r"key-[0-9a-f]{32}"),
    _key("phone key", "SK", r"SK[0-9a-f]{32}"),
    _key("encryption key", "AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[A-Z0-9]{58}"),
    # The set is written out: here it is four times as fast as `\w`, and a text may have thousands of starts.
    _key("jwt", "eyJ", rf"eyJ{_64}{{8,2048}}+\.eyJ{_64}{{8,8192}}+\.{_64}{{10,2048}}", "eyJ"),
)
"""Keys that are recognised by their form in any place."""

_HINTED: Final = tuple((trigger, place) for place, detector in enumerate(KEYS) for trigger in detector.triggers)
_ADDRESS_HINT: Final = "://"

_URL_KIND: Final = "password in an address"
_SAID_KIND: Final = "password"

# Endings of names with a secret value, and what may follow them in the name.
_NAME: Final = (
    r"(?:pass(?:word|wd|phrase|wort)|passwd|pwd|secret|token|api[_-]?key|apikey|access[_-]?key|auth[_-]?key"
    r"|private[_-]?key|account[_-]?key|credential|密码|口令|密钥|令牌)"
    r"(?:[_.-]?(?:access|secret|key|base|token|value|string|plain|prod|dev|test|\d{1,2})){0,3}"
)
# The ends of names of keys, with all that ignoring case takes for an i or an s, in small letters.
_KEY_ENDS: Final = tuple(
    f"{end}{joint}key"
    for end in ("pi", "pı", "pi\u0307", "ss", "sſ", "ſs", "ſſ", "th", "te", "nt")
    for joint in ("", "_", "-")
)
_SAID_HINTS: Final = (
    "pass",
    "pwd",
    "secret",
    "token",
    "credential",
    "密",
    "口令",
    "令牌",
    "bearer",
    "basic",
    *_KEY_ENDS,
)
"""Words in lower case, one of which stands before every value that is secret by what is said of it."""
_SPELLINGS: Final = defaultdict[str, set[str]](set)
for _hint in (_ADDRESS_HINT, *_SAID_HINTS, *(trigger for trigger, _ in _HINTED)):
    _SPELLINGS[_hint.lower()].add(_hint)
_HINTS: Final = HintWords(_SPELLINGS)
_SETS: Final = r"[\"'`\]]{0,2}(?:[ \t]{0,8}(?::=|=>|[:=：＝]|是|为|\bis\b:?)[ \t]{0,8}|(?<=[码令钥牌])[ \t]{1,4})"
_QUOTED = re.compile(
    rf"(?i)({_NAME}){_SETS}[rbuf]{{0,2}}(?:\"([^\"\s]{{4,256}}+)\"|'([^'\s]{{4,256}}+)'|`([^`\s]{{4,256}}+)`)"
)
# Without quotes the value ends the line, a pair of quotes that began before it, or stands before another setting.
_BARE = re.compile(rf"(?i)({_NAME}){_SETS}([^\s\"'`,;，。；&()<>{{}}\[\]|]{{4,256}}+)(?=[\s,;，。；&\"'`]|$)")
_OPTION = re.compile(
    r"(?i)(--(?:password|passwd|token|secret|api-key))(?:=|[ \t]{1,4})([^\s\"'`<>{}$-][^\s\"'`<>{}$]{3,255})"
)
_BEARER = re.compile(r"(?i)\b(?:bearer|basic)[ \t]{1,4}([A-Za-z0-9+/_.~-]{20,2048}+={0,2})")

_IS_PASSWORD = re.compile(r"(?i)pass|pwd|密码|口令")
_PLACEHOLDER = re.compile(
    r"(?i)[x*.•·_-]{3,}$|\[redacted|.*(?:example|placeholder|changeme|change[-_]me|your[-_]|dummy|sample|redacted)"
    r"|(?:my|the|a|an|some|test|user|db|new|old|fake|foo|bar)?[-_]?(?:pass(?:word|wd|phrase)?|pwd|secret|token|key)s?\d?$"
    r"|\$|%|\{|<|#|@|env[.:(]|os\.|process\.|(?:true|false|none|null|undefined|optional|required|string|bytes|str|int)\b"
)
_EXPRESSION = re.compile(r"[A-Za-z_][\w-]*(?:(?:\.|::|->)[A-Za-z_]\w*)+$|[/~.]|https?:")
_WORD = re.compile(r"[A-Za-z][a-z]*(?:[-_. ]?[A-Za-z]+)*$")
_DIGIT = re.compile(r"\d")
_LETTER = re.compile(r"[A-Za-z]")
_LEAST_OF_A_KEY: Final = 12


class Redacted(NamedTuple):
    """A text without its secrets, and how many there were of each kind."""

    text: str
    kinds: Mapping[str, int]


def may_hold_secret(text: str) -> bool:
    """Whether the text has any of the words without which `redacted` finds nothing. Most texts have none."""
    return bool(_hints_in(text))


def redacted(text: str) -> Redacted:
    """The text with `[redacted: kind]` for each secret. Doing so twice changes nothing."""
    hints = _hints_in(text)
    if not hints:
        return Redacted(text, {})
    found: Counter[str] = Counter()
    for place in sorted({place for trigger, place in _HINTED if trigger in hints}):
        text = _without(text, KEYS[place], found)
    if _ADDRESS_HINT in hints:
        text = _ADDRESS.sub(lambda match: _in_place(match, 1, _URL_KIND, found), text)
    # A mark that takes the place of a key has such a word in it.
    if found or not hints.isdisjoint(_SAID_HINTS):
        text = "\n".join(_without_passwords(line, found) for line in text.split("\n"))
    return Redacted(text, dict(found))


def _hints_in(text: str) -> set[str]:
    """The words in a text that stand in or before secrets; of those that are said, also in capital letters."""
    found = _HINTS.within(text.lower())
    return {hint for word in found for hint in _SPELLINGS[word] if hint in _SAID_HINTS or hint in text}


def as_stored(text: str, policy: SecretPolicy) -> str:
    """The text as a project of this policy stores it."""
    return redacted(text).text if policy is SecretPolicy.REDACT else text


def _without(text: str, detector: Detector, found: Counter[str]) -> str:
    group = min(detector.pattern.groups, 1)

    def without(match: re.Match[str]) -> str:
        return _taken_out(match, group, detector.kind, found)

    if detector.begin:
        return replaced(matches_from(detector.begin, detector.pattern, text), without, text)
    return substituted(detector.pattern, without, text, detector.reach)


def _in_place(match: re.Match[str], group: int, kind: str, found: Counter[str]) -> str:
    return match[0] if _PLACEHOLDER.match(match[group]) else _taken_out(match, group, kind, found)


def _taken_out(match: re.Match[str], group: int, kind: str, found: Counter[str]) -> str:
    found[kind] += 1
    start, end = match.span(group)
    return f"{match.string[match.start() : start]}[redacted: {kind}]{match.string[end : match.end()]}"


def _without_passwords(line: str, found: Counter[str]) -> str:
    if not holds_any(_SAID_HINTS, line.lower()):
        return line
    line = substituted(_BEARER, lambda match: _if_key(match, 1, found), line)
    line = substituted(_QUOTED, lambda match: _if_value(match, match.lastindex or 2, found, is_quoted=True), line)
    line = substituted(_BARE, lambda match: _if_value(match, 2, found, is_quoted=False), line)
    if "--" not in line:
        return line
    return substituted(_OPTION, lambda match: _if_value(match, 2, found, is_quoted=False), line)


def _if_key(match: re.Match[str], group: int, found: Counter[str]) -> str:
    is_key = _DIGIT.search(match[group]) and _LETTER.search(match[group])
    return _taken_out(match, group, "token", found) if is_key else match[0]


def _if_value(match: re.Match[str], group: int, found: Counter[str], *, is_quoted: bool) -> str:
    value = match[group]
    if _PLACEHOLDER.match(value) or _EXPRESSION.match(value):
        return match[0]
    if _IS_PASSWORD.search(match[1]):
        is_secret, kind = is_quoted or not (_WORD.match(value) or value.isdigit()), _SAID_KIND
    else:
        has_both = _DIGIT.search(value) and _LETTER.search(value)
        is_secret, kind = len(value) >= _LEAST_OF_A_KEY and bool(has_both), "secret"
    return _taken_out(match, group, kind, found) if is_secret else match[0]
