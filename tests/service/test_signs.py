"""A memory is found by what it alone shares with a question: emoji, symbols, words of any script, language names."""

from __future__ import annotations

import pytest

from hummock_client.v1 import recall_pb2 as recall
from tests.service.calls import ask, contents, learn
from tests.service.inputs import note
from tests.service.running import Stubs

PRESETS = [recall.PRESET_AGENT, recall.PRESET_CHAT, recall.PRESET_CODE]
SIGNS = {
    **{"🦄": "launch is on Tuesday", "☕": "machine is broken", "🇩🇪": "office is closed", "👩‍👩‍👧": "plan costs 12"},
    **{"✅": "means approved", "❌": "means rejected", "🚀": "release is ready", "👍🏽": "from the board is enough"},
    **{"❤️": "button saves a song", "🔥": "alarm is tested on Monday", "1️⃣": "queue is for orders", "🇫🇷": "office moved"},
    **{
        "🏳️‍🌈": "group meets at noon",
        "🏴󠁧󠁢󠁳󠁣󠁴󠁿": "office has a new address",
        "±": "is the tolerance key",
        "≠": "marks a mismatch",
    },
    **{"©": "line is required", "→": "opens the next page", "€": "prices include tax", "§": "links to the law"},
}
SCRIPTS = (
    """
मुंबई कार्यालय बंद है|काम सोमवार से|ঢাকা অফিস বন্ধ|சென்னை அலுவலகம் மூடப்பட்டது|హైదరాబాద్ కార్యాలయం మూసివేయబడింది
ಬೆಂಗಳೂರು ಕಚೇರಿ ಮುಚ್ಚಿದೆ|കൊച്ചി ഓഫീസ് അടച്ചു|અમદાવાદ ઓફિસ બંધ છે|ਅੰਮ੍ਰਿਤਸਰ ਦਫ਼ਤਰ ਬੰਦ ਹੈ|ଭୁବନେଶ୍ୱର କାର୍ଯ୍ୟାଳୟ ବନ୍ଦ
කොළඹ කාර්යාලය වසා ඇත|ရန်ကုန် ရုံးပိတ်သည်|ភ្នំពេញ ការិយាល័យបិទ|ལྷ་ས ལས་ཁུངས་བརྒྱབ་སོང་|กรุงเทพ สำนักงานปิดแล้ว
ວຽງຈັນ ຫ້ອງການປິດແລ້ວ|القُدْس المكتب مغلق|تهران دفتر بسته است|יְרוּשָׁלַיִם המשרד סגור|서울 사무실은 닫혔다
東京 オフィスは閉まっている|Москва офис закрыт
Αθήνα το γραφείο είναι κλειστό|Երևան գրասենյակը փակ է|თბილისი ოფისი დახურულია|አዲስ ቢሮው ተዘግቷል
""".strip()
    .replace("\n", "|")
    .split("|")
)
LANGUAGES = {
    **{
        "C#": "exporter",
        "C++": "importer",
        "F#": "planner",
        "Go": "crawler",
        "R": "parser",
        "C": "linker",
        "D": "renderer",
    },
    **{
        "J#": "solver",
        "Q#": "scheduler",
        ".NET": "gateway",
        "V": "compiler",
        "Zig": "shell",
        "PL/SQL": "ledger",
        "A*": "router",
    },
}


@pytest.mark.parametrize("preset", PRESETS)
def test_what_a_sign_means_is_told_by_the_memory_that_holds_it(
    service: Stubs, project: str, preset: recall.Preset.ValueType
) -> None:
    learn(service, project, *(note(f"{sign} {text}") for sign, text in SIGNS.items()))
    for sign, text in SIGNS.items():
        for question in (sign, f"what does {sign} mean?", f"{sign}是什么意思？"):
            assert contents(ask(service, project, question, preset=preset))[:1] == [f"{sign} {text}"], question


def test_a_question_of_signs_alone_is_answered_by_words_alone(service: Stubs, project: str) -> None:
    learn(service, project, *(note(f"{sign} {text}") for sign, text in SIGNS.items()))
    assert contents(ask(service, project, "🚀 ±")) in (
        ["🚀 release is ready", "± is the tolerance key"],
        ["± is the tolerance key", "🚀 release is ready"],
    )
    assert contents(ask(service, project, "🐙")) == []


def test_a_skin_tone_is_told_from_others_and_finds_them(service: Stubs, project: str) -> None:
    learn(service, project, note("👍 is a vote"), note("👍🏽 is her vote"), note("👎 is none"))
    assert contents(ask(service, project, "👍🏽")) == ["👍🏽 is her vote", "👍 is a vote"]


@pytest.mark.parametrize("preset", PRESETS)
def test_a_word_of_any_script_finds_the_memory_that_holds_it(
    service: Stubs, project: str, preset: recall.Preset.ValueType
) -> None:
    learn(service, project, *map(note, SCRIPTS))
    for text in SCRIPTS:
        assert contents(ask(service, project, text.split()[0], preset=preset))[0] == text


@pytest.mark.parametrize("preset", PRESETS)
def test_the_name_of_a_language_finds_the_memory_that_holds_it(
    service: Stubs, project: str, preset: recall.Preset.ValueType
) -> None:
    learn(service, project, *(note(f"the {tool} is in {name}") for name, tool in LANGUAGES.items()))
    for name, tool in LANGUAGES.items():
        for question in (name, name.lower(), f"what is written in {name}?"):
            assert contents(ask(service, project, question, preset=preset))[0] == f"the {tool} is in {name}", question


def test_under_code_a_word_of_a_sentence_recalls_nothing(service: Stubs, project: str) -> None:
    """S0-36."""
    learn(service, project, note("the router is in a room"))
    assert contents(ask(service, project, "a", preset=recall.PRESET_CODE)) == []
    assert contents(ask(service, project, "is", preset=recall.PRESET_CODE)) == []
