"""Words, signs and names of languages as people write them, long queries, and Chinese questions for English code."""

from __future__ import annotations

import pytest

from hummock_client.v1 import learning_service_pb2 as learning
from hummock_client.v1 import recall_pb2 as recall
from tests.service.calls import ask, contents, learn, recall_request
from tests.service.inputs import domain, entry, fragment, note
from tests.service.running import Stubs

pytestmark = pytest.mark.storeless


@pytest.mark.parametrize(
    ("query", "held", "shown"),
    [
        ("Which parties are PARSING it?", "we parse it for the party", ["parties", "PARSING"]),
        ("parseDates of the 还款日", "parse dates; 还款", ["parse", "Dates", "还款"]),
        ("what doesn't load, ｆｕｌｌ width", "it doesn't load full width", ["doesn't", "load", "full", "width"]),
    ],
)
def test_matched_terms_stand_as_the_query_writes_them(
    service: Stubs, project: str, query: str, held: str, shown: list[str]
) -> None:
    learn(service, project, note(held))
    (hit,) = ask(service, project, query).hits
    assert [term for term in hit.matched_terms if term in shown] == shown


@pytest.mark.parametrize("paths", [[], [recall.RECALL_PATH_KEYWORD]])
@pytest.mark.parametrize(
    ("query", "held"),
    [
        ("還款後怎麼開發票", "还款后可以开发票"),
        ("还款后怎么开发票", "還款後可以開發票"),
        ("臺灣的颱風", "台湾今年有四个台风"),
    ],
)
def test_either_way_of_writing_chinese_finds_the_other_by_words(
    service: Stubs, project: str, query: str, held: str, paths: list[recall.RecallPath]
) -> None:
    learn(service, project, note("猫喜欢晒太阳"), note(held, id="wanted"), note("每天早上跑步"))
    hit = ask(service, project, query, paths=paths).hits[0]
    assert (hit.memory.id, hit.memory.content) == ("wanted", held)
    assert all(term in query for term in hit.matched_terms)
    assert recall.RECALL_PATH_KEYWORD in hit.paths


def test_a_text_in_the_other_way_of_writing_is_a_memory_of_its_own(service: Stubs, project: str) -> None:
    """1.1-2: what counts as the same text does not depend on how it is searched."""
    learn(service, project, note("每月十五號還款"), note("每月十五号还款"))
    assert len(ask(service, project, "每月十五号还款").hits) == 2


NOISE = [note(f"the {each} of the house is old") for each in ("roof", "door", "window", "cellar", "garden")]


def corrections(hit: recall.Hit) -> list[tuple[str, str]]:
    return [(each.asked, each.meant) for each in hit.corrections]


@pytest.mark.parametrize("paths", [[], [recall.RECALL_PATH_KEYWORD]])
@pytest.mark.parametrize(
    ("query", "held", "correction"),
    [
        ("parseDaet", "we call parseDate there", ("parseDaet", "parseDate")),
        ("where is parse_daet", "def parse_date(text): ...", ("parse_daet", "parse_date")),
        ("lighthose paint", "Lighthouses shine", ("lighthose", "Lighthouses")),
        ("configuraiton", "every configuration lies here", ("configuraiton", "configuration")),
        ("xconnect", "connect at noon", ("xconnect", "connect")),
        ("huankuan", "每月十五号还款", ("huankuan", "还款")),
        ("huan kuan ri", "还款日是十五号", ("huan kuan ri", "还款日")),
        ("huankuan", "每月十五號還款", ("huankuan", "還款")),
        ("还款", "huankuan every month", ("还款", "huankuan")),
    ],
)
def test_a_word_that_nobody_holds_is_taken_for_one_that_is_held(
    service: Stubs, project: str, query: str, held: str, correction: tuple[str, str], paths: list[recall.RecallPath]
) -> None:
    learn(service, project, *NOISE, note(held, id="wanted"))
    hit = ask(service, project, query, paths=paths).hits[0]
    assert hit.memory.id == "wanted"
    assert correction in corrections(hit)
    assert correction[0] not in hit.matched_terms
    assert recall.RECALL_PATH_KEYWORD in hit.paths


@pytest.mark.usefixtures("real_models")
def test_what_may_be_meant_ranks_behind_what_holds_a_word_of_the_query(service: Stubs, project: str) -> None:
    said = [note("the invoice came late, and much else with it, on a day of rain and wind", id="said")]
    learn(service, project, *NOISE, *said, note("lighthouse", id="meant"), note("还款", id="pinyin"))
    hits = ask(service, project, "lighthose invoice huankuan", paths=[recall.RECALL_PATH_KEYWORD]).hits
    assert [hit.memory.id for hit in hits][:3] == ["said", "meant", "pinyin"]
    assert not corrections(hits[0])


@pytest.mark.parametrize(
    ("query", "held", "said"),
    [
        ("parseDaet", "we call parseDate there", "taken for its own: parseDaet → parseDate"),
        ("还款", "huankuan every month", "按它的词理解：还款 → huankuan。"),
    ],
)
def test_explain_says_which_words_were_taken_for_others(
    service: Stubs, project: str, query: str, held: str, said: str
) -> None:
    learn(service, project, *NOISE, note(held, id="wanted"))
    hit = ask(service, project, query).hits[0]
    explained = service.context.Explain(recall=recall_request(project, query), memory_id="wanted")
    assert list(explained.numbers.corrections) == list(hit.corrections)
    assert hit.corrections
    assert said in explained.sentence


def test_explain_speaks_of_no_other_words_where_the_query_s_own_are_held(service: Stubs, project: str) -> None:
    learn(service, project, *NOISE, note("we call parseDate there", id="wanted"))
    asked = recall_request(project, "parseDate")
    explained = service.context.Explain(recall=asked, memory_id="wanted")
    assert not explained.numbers.corrections
    assert "→" not in explained.sentence


def test_a_word_that_is_held_is_taken_for_no_other(service: Stubs, project: str) -> None:
    learn(service, project, note("parseDaet is misspelt", id="held"), note("parseDate is not", id="other"))
    hits = ask(service, project, "parseDaet", paths=[recall.RECALL_PATH_KEYWORD]).hits
    assert hits[0].memory.id == "held"
    assert not any(corrections(hit) for hit in hits)


@pytest.mark.parametrize("query", ["port 8081", "sha257", "error E1235", "the", "cst", "Ünit", "form7"])
def test_numbers_short_words_and_stop_words_are_taken_for_no_other(service: Stubs, project: str, query: str) -> None:
    learn(service, project, note("port 8080, sha256, E1234, then, cut, unit, form8"))
    assert not any(corrections(hit) for hit in ask(service, project, query).hits)


PRESETS = [recall.PRESET_AGENT, recall.PRESET_CHAT, recall.PRESET_CODE]
SIGNS = {
    **{"🦄": "launch is on Tuesday", "☕": "machine is broken", "🇩🇪": "office is closed", "👩‍👩‍👧": "plan costs 12"},
    **{"✅": "means approved", "❌": "means rejected", "🚀": "release is ready", "👍🏽": "from the board is enough"},
    **{"❤️": "button saves a song", "🔥": "alarm is tested on Monday", "1️⃣": "queue is for orders", "🇫🇷": "office moved"},
    **{"🏳️‍🌈": "group meets at noon", "🏴󠁧󠁢󠁳󠁣󠁴󠁿": "office has a new address"},
    **{"±": "is the tolerance key", "≠": "marks a mismatch"},
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
    **{"C#": "exporter", "C++": "importer", "F#": "planner", "Go": "crawler", "R": "parser", "C": "linker"},
    **{"D": "renderer", "J#": "solver", "Q#": "scheduler", ".NET": "gateway", "V": "compiler", "Zig": "shell"},
    **{"PL/SQL": "ledger", "A*": "router"},
}


@pytest.mark.long
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
    assert sorted(contents(ask(service, project, "🚀 ±"))) == ["± is the tolerance key", "🚀 release is ready"]
    assert contents(ask(service, project, "🐙")) == []


def test_a_skin_tone_is_told_from_others_and_finds_them(service: Stubs, project: str) -> None:
    learn(service, project, note("👍 is a vote"), note("👍🏽 is her vote"), note("👎 is none"))
    assert contents(ask(service, project, "👍🏽")) == ["👍🏽 is her vote", "👍 is a vote"]


@pytest.mark.long
@pytest.mark.parametrize("preset", PRESETS)
def test_a_word_of_any_script_finds_the_memory_that_holds_it(
    service: Stubs, project: str, preset: recall.Preset.ValueType
) -> None:
    learn(service, project, *map(note, SCRIPTS))
    for text in SCRIPTS:
        assert contents(ask(service, project, text.split()[0], preset=preset))[0] == text


@pytest.mark.long
@pytest.mark.parametrize("preset", PRESETS)
def test_the_name_of_a_language_finds_the_memory_that_holds_it(
    service: Stubs, project: str, preset: recall.Preset.ValueType
) -> None:
    learn(service, project, *(note(f"the {tool} is in {name}") for name, tool in LANGUAGES.items()))
    for name, tool in LANGUAGES.items():
        for question in (name, name.lower(), f"what is written in {name}?"):
            assert contents(ask(service, project, question, preset=preset))[0] == f"the {tool} is in {name}", question


BY_WORDS = [recall.RECALL_PATH_KEYWORD]
TALK = " ".join(f"we talked about point {number} of the agenda and about topic{number} too" for number in range(40))
CHINESE = "".join(f"我们今天讨论了第{number}个问题，大家都同意了这个方案，" for number in "一二三四五六七八九十")


@pytest.mark.long
@pytest.mark.parametrize(
    ("talk", "said"),
    [(TALK, "zeppelins land at noon"), (CHINESE, "飞艇中午降落"), (TALK + CHINESE, "parse_date 只接受 ISO 8601")],
)
def test_the_telling_word_at_the_end_of_a_long_query_is_looked_for(
    service: Stubs, project: str, talk: str, said: str
) -> None:
    """S0-36."""
    filler = [note(f"point {number} of the agenda, 大家讨论了问题和方案 {number}") for number in range(20)]
    learn(service, project, *filler, note(said, id="wanted"))
    reply = ask(service, project, f"{talk} {said.split()[0]}", paths=BY_WORDS)
    assert contents(reply)[0] == said
    assert reply.hits[0].matched_terms


def test_words_of_an_intent_are_looked_for_before_those_of_a_long_query(service: Stubs, project: str) -> None:
    """S0-36."""
    filler = [note(f"the agenda has point {number}") for number in range(20)]
    learn(service, project, *filler, note("the agenda is common", id="wanted"))
    intent = recall.Intent(keywords=["common"])
    assert ask(service, project, TALK, paths=BY_WORDS, intent=intent).hits[0].memory.id == "wanted"


CODE = {
    "cache.py": ("invalidate_cache", "def invalidate_cache(key):\n    entries.pop(key)\n"),
    "retry.py": ("retry_with_backoff", "def retry_with_backoff(call):\n    return call()\n"),
    "button.py": ("render_button", "def render_button(label):\n    return label\n"),
    "date.py": ("parse_date", "def parse_date(text):\n    return text\n"),
}


def teach(service: Stubs, project: str) -> None:
    learn(service, project, *(fragment(path, symbol, text, language="python") for path, (symbol, text) in CODE.items()))


def test_a_chinese_question_finds_the_english_function_by_words_that_are_told(service: Stubs, project: str) -> None:
    teach(service, project)
    for question, symbol in (("缓存失效", "invalidate_cache"), ("失败以后怎么退避重试？", "retry_with_backoff")):
        hits = ask(service, project, question, preset=recall.PRESET_AGENT).hits
        assert hits[0].memory.code_fragment.symbol == symbol
    receipt = ask(service, project, "缓存失效", preset=recall.PRESET_AGENT).receipt
    told = [(each.term, list(each.words)) for each in receipt.gloss]
    assert told == [("缓存", ["cache"]), ("失效", ["expire", "invalidate"])]
    assert receipt.gloss_version.startswith("zh-en.v1:")
    english = ask(service, project, "invalidate the cache", preset=recall.PRESET_AGENT).receipt
    assert (list(english.gloss), english.gloss_version) == ([], "")


def terms(service: Stubs, project: str, question: str) -> dict[str, list[str]]:
    receipt = ask(service, project, question, preset=recall.PRESET_AGENT).receipt
    return {each.term: list(each.words) for each in receipt.gloss}


def test_aliases_and_keywords_join_the_glossary_of_their_project(service: Stubs, project: str) -> None:
    """S0-10, S0-06, S3-34."""
    teach(service, project)
    teach(service, f"{project}-other")
    question = "账脉的失效"
    assert terms(service, project, question) == {"失效": ["expire", "invalidate"]}
    learnt = learn(service, project, domain("Ledgerline", "books", aliases=("账脉", "cache book")))
    assert terms(service, project, question)["账脉"] == ["Ledgerline", "cache book"]
    assert "账脉" not in terms(service, f"{project}-other", question)
    service.memory.DeleteMemories(project=project, ids=[learnt.results[0].id])
    assert terms(service, project, question) == {"失效": ["expire", "invalidate"]}
    learn(service, project, entry("core", "Tidewood core", "grows by the sea"))
    assert "硬木头" not in terms(service, project, "硬木头怎么失效")
    keywords = learning.EntryKeywords(memory_id="core", keywords=["硬木头"])
    service.learning.UpdateLearningSettings(project=project, keywords=[keywords])
    assert terms(service, project, "硬木头怎么失效")["硬木头"] == ["Tidewood core"]
