"""Likeness of different texts: which are shown once, and which repeat a question."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import hummock.text.likeness as likeness_module
from hummock.recall.query_features import echo_hashes
from hummock.text.likeness import MOST_FOLDED, forms, likeness
from tests.memories.test_identity import APART

SPELLINGS = (
    ("刚吃完饭！", "刚吃完饭!", "刚吃完饭", "刚 吃完饭。", "刚吃完饭😋", "刚吃完饭～", "刚吃完饭！🍚", "刚吃完饭 ^_^ "),
    ("good morning", "Good morning!", "Good  morning :)", "good morning ☺️", "good　morning...", "Good morning 🙏🏽!!"),
    ("you did it?", "You did it？", "You did it?!"),
    ("我下班了,先走了", "我下班了，先走了。", "我下班了， 先走了~"),
)
SIGNS = (
    ("The build is ✅", "The build is ❌?"), ("I voted 👎", "I voted 👍"), ("I was born in 🇫🇷", "I was born in 🇩🇪"),
    ("the plug is ♂️", "the plug is ♀️"), ("go to step ❶", "go to step ❷"), ("cd ~", "cd .."), ("cd ~", "cd"),
    ("上线✅", "上线"), ("今天☀️", "今天☁️"),
)  # fmt: skip
"""Facts that are told by a sign alone."""

OTHERS = (
    *APART, ("you did it", "you did it?"), ("the build ✅", "the build ❌"),
    ("my favourite is 🦄", "my favourite is 🐴"), ("vote 👍", "vote 👎"), ("cd ~", "cd"), ("cd ..", "cd ."),
    ("call f(8)", "call f(x)"), ("x = y", "x  =  y"), ('the name is "a  b"', 'the name is "a b"'),
    ("the name is 'a  b'", "the name is 'a b'"), ("I met Bob", "I met bob"), ("ParseDate it", "parseDate it"),
    ("5 mW", "5 MW"), ("it is 5", "it is -5"), ("C#", "C"), ("done! ✅", "done! ❌"), *SIGNS,
    ("I'm fine :(", "I'm fine :)"), ("I saw it 😢", "I saw it 😂"), ("我没事。T_T", "我没事。^_^"),
    ("really? 🙄", "really? 😍"),
)  # fmt: skip
PIECES = st.text(st.sampled_from("aBé2²饭 　\t\n!！.。~?？:)-_\U0001f60b✅🍚️'\"xD"), max_size=12)


@given(st.text(st.sampled_from("aAoODPpTQXx3éλ٣½好 .~!?。:;=<>^-_'()[]*/|\u2600\ufe0f\U0001f60b"), max_size=12))
def test_a_tail_begins_behind_the_last_word(text: str) -> None:
    words = likeness_module._BEFORE_TAIL.match(text)
    tail, sooner = likeness_module._TAIL.search(text), likeness_module._TAIL.search(text, words.end() if words else 0)
    assert (tail and tail.span()) == (sooner and sooner.span())


def shown(text: str) -> tuple[int, int]:
    return likeness(text, (), is_code=False)


def shown_once(text: str) -> str:
    return forms(text)[0]


def echo_form(text: str) -> str:
    return forms(text)[1]


@pytest.mark.parametrize("spellings", SPELLINGS, ids=lambda several: several[0])
def test_spellings_of_one_sentence_are_shown_once(spellings: tuple[str, ...]) -> None:
    assert len({shown(text) for text in spellings}) == 1


TYPED_OTHERWISE = {"刚吃完饭！", "Polish it", "café", "temperature in K"}
"""Texts that are kept apart: they differ in final marks, in a first capital, or not at all by Unicode."""


@pytest.mark.parametrize(("one", "other"), [pair for pair in OTHERS if pair[0] not in TYPED_OTHERWISE])
def test_texts_that_may_mean_different_things_are_both_shown(one: str, other: str) -> None:
    assert shown(one) != shown(other)


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("今天好累", "今天好累😭"),
        ("今天好累😭", "今天好累"),
        ("今天😭好累", "今天好累!"),
        ("good morning :)", "good morning"),
        ("Good Morning", "good morning ^^"),
        ("早安😊", "早安～"),
        ("上线✅ 😂", "上线✅"),
        ("done! 🍺", "Done"),
        ("早安 T_T", "早安"),
        ("xD hello", "hello"),
        ("🦄", "🦄"),
        ("???", "???"),
        ("Hello　World  还款ＡＢＣ", "hello world 还款abc"),
        ("start with -V", "Start with -V?"),
    ],
)
def test_an_echo_is_known_without_emoji_emoticons_and_final_marks(said: str, asked: str) -> None:
    assert echo_form(said) == echo_form(asked)


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("🦄", "☕"), ("今天好累", "😭"), (":)", ":("), ("!", "?"), ("start with -v", "start with -V"),
        ("10² m", "102 m"), *SIGNS,
    ],
)  # fmt: skip
def test_what_says_something_else_is_no_echo(said: str, asked: str) -> None:
    assert echo_form(said) != echo_form(asked)
    assert shown(said)[0] not in echo_hashes(asked)
    assert shown(asked)[0] not in echo_hashes(said)


@given(PIECES)
@example("- 饭B")
@example("饭 ~")
def test_what_is_shown_once_is_one_echo(text: str) -> None:
    again = shown_once(text)
    assert shown_once(again) == again
    assert echo_form(again) == echo_form(text)


def test_a_text_of_two_owners_is_shown_for_each() -> None:
    hashes = {likeness("one", owner, is_code=False)[1] for owner in ((), (("user", "a"),), (("user", "b"),))}
    assert len(hashes) == 3
    assert likeness("one", (), is_code=False)[1] == 0


def test_a_long_text_is_an_echo_as_it_is_written() -> None:
    text = "One two! " * (MOST_FOLDED // 8)
    assert forms(text) == (text.strip(), text.strip())
    assert shown(text)[0] in echo_hashes(f"{text}\r\n")
