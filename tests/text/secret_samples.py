"""Made-up secrets of every kind, in the surroundings in which people leave them. None was ever valid."""

from __future__ import annotations

import string
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

_WORD = string.ascii_letters + string.digits
_HEX = "0123456789abcdef"
_UPPER = string.ascii_uppercase + "234567"


@dataclass(frozen=True, slots=True)
class Sample:
    """A text with one secret in it."""

    text: str
    secret: str
    kind: str


def _some(random: Random, alphabet: str, count: int) -> str:
    return "".join(random.choice(alphabet) for _ in range(count))


def _jwt(random: Random) -> str:
    return f"eyJhbGciOiJIUzI1NiJ9.eyJ{_some(random, _WORD, 40)}.{_some(random, _WORD + '-_', 43)}"


def _pem(random: Random) -> str:
    name = random.choice(("RSA PRIVATE KEY", "PRIVATE KEY", "OPENSSH PRIVATE KEY", "EC PRIVATE KEY"))
    body = "\n".join(_some(random, _WORD + "+/", 64) for _ in range(4))
    return f"-----BEGIN {name}-----\n{body}\n-----END {name}-----"


KEYS: dict[str, Callable[[Random], str]] = {
    "aws": lambda r: "AKIA" + _some(r, _UPPER, 16),
    "aliyun": lambda r: "LTAI" + _some(r, _WORD, 20),
    "tencent": lambda r: "AKID" + _some(r, _WORD, 32),
    "google": lambda r: "AIza" + _some(r, _WORD + "-_", 34) + "x",
    "digitalocean": lambda r: "dop_v1_" + _some(r, _HEX, 64),
    "vault": lambda r: "hvs." + _some(r, _WORD, 24),
    "github": lambda r: r.choice(("ghp_", "gho_", "ghs_")) + _some(r, _WORD, 36),
    "github fine": lambda r: "github_pat_" + _some(r, _WORD, 82),
    "gitlab": lambda r: "glpat-" + _some(r, _WORD, 20),
    "npm": lambda r: "npm_" + _some(r, _WORD, 36),
    "stripe": lambda r: r.choice(("sk_live_", "rk_live_", "sk_test_")) + _some(r, _WORD, 24),
    "square": lambda r: "sq0atp-" + _some(r, _WORD, 22),
    "shopify": lambda r: "shpat_" + _some(r, _HEX, 32),
    "anthropic": lambda r: "sk-ant-api03-" + _some(r, _WORD, 80),
    "openai": lambda r: r.choice(("sk-", "sk-proj-")) + _some(r, _WORD, 48),
    "hugging": lambda r: "hf_" + _some(r, _WORD, 34),
    "slack": lambda r: f"xoxb-{_some(r, string.digits, 12)}-{_some(r, _WORD, 24)}",
    "telegram": lambda r: f"{_some(r, '123456789', 9)}:AA{_some(r, _WORD, 33)}",
    "sendgrid": lambda r: f"SG.{_some(r, _WORD, 22)}.{_some(r, _WORD, 43)}",
    "twilio": lambda r: "SK" + _some(r, _HEX, 32),
    "jwt": _jwt,
    "pem": _pem,
}
_AROUND = (
    "{}", "key: {}", "我的密钥是 {}，请不要外传。", "用 {} 登录就行", "The key is {} and it works.", '  "key": "{}",',
    "export API={}", "conn = connect('{}')", "curl -H 'X-Key: {}' https://api.test/v1", "# {}",
    "线上环境（{}）已经换过。",
    "<add name=\"k\" value=\"{}\"/>", "first line\n{}\nlast line",
)  # fmt: skip
_PASSWORDS = (
    'password = "{}"', "password: {}", "DB_PASSWORD={}", "spring.datasource.password={}", '"password": "{}",',
    "密码：{}", "密码是 {}", "数据库口令: {}", "passwd='{}'", "const pwd = '{}';", "mysql --password={} -u root",
    "    POSTGRES_PASSWORD: {}", "the password is: {}", "redis_pass_phrase=\npassphrase = '{}'", "用户名 root，密码 {}",
)  # fmt: skip
_SECRETS = (
    'client_secret = "{}"', "API_KEY={}", "api-key: {}", "auth_token: '{}'", "aws_secret_access_key = {}",
    "SECRET_KEY_BASE={}", "access_key: {}", "Authorization: Bearer {}", "令牌：{}", "accessToken: \"{}\"",
)  # fmt: skip
_ADDRESSES = (
    "postgres://app:{}@db.internal:5432/app", "mysql://root:{}@127.0.0.1/loan", "redis://:{}@cache:6379/0",
    "连接串 mongodb+srv://svc:{}@cluster0.test/db 已更新", 'url: "amqp://guest:{}@mq:5672"',
    "https://bot:{}@git.test/a.git",
)  # fmt: skip


def password(random: Random) -> str:
    """A password of the kind people make: a word, digits, sometimes a sign."""
    word = random.choice(("hunter", "Sommer", "qwerty", "Zhang", "dragon", "loan", "Mima", "aBc", "woaini"))
    return word + _some(random, string.digits, random.randrange(1, 5)) + random.choice(("", "!", "#", "_x", "?", "%Q"))


def samples(seed: int, count: int) -> list[Sample]:
    """Samples of each of the four sorts, `count` each, evenly over the kinds of keys."""
    random = Random(seed)  # noqa: S311 - to be repeated
    found = []
    for place in range(count):
        name, make = list(KEYS.items())[place % len(KEYS)]
        key = make(random)
        found.append(Sample(random.choice(_AROUND).replace("{}", key), key, name))
        for kind, texts, secret in (
            ("password", _PASSWORDS, password(random)),
            ("assigned", _SECRETS, _some(random, _WORD, 20) + "a1"),
            ("address", _ADDRESSES, _some(random, _WORD + "-_.~!", 12)),
        ):
            found.append(Sample(random.choice(texts).replace("{}", secret), secret, kind))
    return found
