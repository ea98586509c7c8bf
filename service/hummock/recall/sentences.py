"""One sentence, in English or Chinese, on why a memory was recalled or not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hummock.core.explain import Change, LossStage, Numbers, Remedy, Verdict
from hummock.core.recall import CAPPED


def sentence(verdict: Verdict | None, remedy: Remedy | None, *, in_chinese: bool) -> str:
    """Describe what happened to the memory and what would help.

    Args:
        verdict: None if the project has no such memory.
        remedy: None if it was recalled, or nothing helps.
        in_chinese: Chinese instead of English.
    """
    words = _ZH if in_chinese else _EN
    if verdict is None:
        return words.not_found
    said = (words.recalled if verdict.stage is None else words.lost[verdict.stage]).format_map(_facts(verdict, words))
    said += _read_as(verdict.numbers or Numbers(), words) + _heard(verdict.numbers or Numbers(), words)
    if verdict.stage is None:
        return said
    if remedy is None:
        return said + words.none
    return said + words.remedy.format(changes=_listed(remedy.changes, words), rank=remedy.rank)


def _facts(verdict: Verdict, words: _Words) -> Mapping[str, object]:
    numbers = verdict.numbers or Numbers()
    return {
        "group": verdict.group,
        "failed": words.joint.join(verdict.failed),
        "other": verdict.others[0] if verdict.others else "",
        "value": f"{verdict.value:.3f}",
        "cosine": f"{numbers.cosine:.3f}",
        "words": words.no_words
        if not numbers.matched_terms
        else words.words.format(terms=", ".join(numbers.matched_terms), share=numbers.evidence),
        "turns": f"{verdict.value:.0f}",
        "threshold": f"{verdict.threshold:g}",
        "place": numbers.place,
        "capped": CAPPED,
        "top_k": numbers.top_k,
        "pool": numbers.pool,
        "relevance_rank": numbers.relevance_rank,
        "vector_rank": _rank(numbers.vector_rank, words),
        "keyword_rank": _rank(numbers.keyword_rank, words),
    }


def _read_as(numbers: Numbers, words: _Words) -> str:
    """Describe the corrections of the query's words; such a hit ranks below those that hold the query's own."""
    pairs = words.joint.join(f"{each.asked} → {each.meant}" for each in numbers.corrections)
    return words.taken.format(pairs=pairs) if pairs else ""


def _heard(numbers: Numbers, words: _Words) -> str:
    """The verdicts on the memory; if they lowered its score, also how to withdraw them."""
    count = numbers.helpful_count + numbers.wrong_count
    if not count:
        return ""
    heard = words.wrong if numbers.wrong_count else words.helpful
    return heard.format(
        helpful=numbers.helpful_count,
        wrong=numbers.wrong_count,
        count=count,
        factor=f"{numbers.verdict:.2f}".lstrip("0"),
    )


def _rank(rank: int, words: _Words) -> str:
    return words.rank.format(rank=rank) if rank else words.no_rank


def _listed(changes: Sequence[Change], words: _Words) -> str:
    return words.joint.join(
        f"{change.field} = {change.value}" if change.value else words.cleared.format(field=change.field)
        for change in changes
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Words:
    """The phrases of one language, with the names that `_facts` gives in braces."""

    recalled: str
    not_found: str
    lost: Mapping[LossStage, str]
    rank: str
    no_rank: str
    words: str
    no_words: str
    taken: str
    wrong: str
    helpful: str
    remedy: str
    none: str
    cleared: str
    joint: str


_EN = _Words(
    recalled="It was recalled: rank {place} of at most {top_k} in the group {group}.",
    not_found="The project has no memory of this id.",
    lost={
        LossStage.QUERY: "The query says too little to recall for.",
        LossStage.GROUP: "No group of this recall takes memories of its kind.",
        LossStage.FILTER: "It does not meet the filter: {failed}.",
        LossStage.SUPERSEDED: "It is superseded by {other}.",
        LossStage.WINDOW: "It is of turn {turns} from the session's end; the last {threshold} turns are left out.",
        LossStage.CANDIDATES: (
            "It was not among the {pool} candidates of a path: {vector_rank} by meaning, {keyword_rank} by words."
        ),
        LossStage.ECHO: "It repeats the query itself.",
        LossStage.MIN_SIMILARITY: (
            "Its similarity is {value} (a cosine of {cosine}), below the minimum of {threshold}, and {words}."
        ),
        LossStage.DUPLICATE: "A newer memory has the same text: {other}.",
        LossStage.RANK: "Its place is {place}; there is room for {top_k} in the group {group}.",
        LossStage.NEAR_TWIN: (
            "It is another version of {other}: they have one name, their cosine is {value} and the bar {threshold}."
        ),
        LossStage.DIVERSITY: (
            "By relevance its rank is {relevance_rank}, but others differ more from the better hits; "
            "it is nearest to {other}, at a cosine of {value}."
        ),
        LossStage.WRITER_CAP: (
            "Its writer has {threshold} of the first {capped} hits already, and nobody vouches for it: memories of "
            "others come before it, and its place is {place}."
        ),
    },
    rank="rank {rank}",
    no_rank="not found",
    words="the words that it shares ({terms}) tell {share:.0%} of what would be enough",
    no_words="it shares no word",
    taken=" Words that no memory holds were taken for its own: {pairs}.",
    wrong=(
        " {wrong} of {count} verdicts said that it is wrong: × {factor}. They are of its text: once that is corrected, "
        "they no longer count."
    ),
    helpful=" {helpful} of {count} verdicts said that it was helpful: × {factor}.",
    remedy=" With {changes} its rank would be {rank}.",
    none=" No change of the request was found that brings it back.",
    cleared="no {field}",
    joint=" and ",
)

_ZH = _Words(
    recalled="已召回：在 {group} 组中排第 {place}（最多 {top_k} 条）。",
    not_found="该项目中没有这个 id 的记忆。",
    lost={
        LossStage.QUERY: "查询内容太少，不做召回。",
        LossStage.GROUP: "本次召回没有任何一组接收它这一类记忆。",
        LossStage.FILTER: "它不满足过滤条件：{failed}。",
        LossStage.SUPERSEDED: "它已被 {other} 取代。",
        LossStage.WINDOW: "它是本会话倒数第 {turns} 轮说的；最近 {threshold} 轮不参与召回。",
        LossStage.CANDIDATES: "它不在每条路径的 {pool} 条候选之内：按语义{vector_rank}，按词语{keyword_rank}。",
        LossStage.ECHO: "它只是重复了查询本身。",
        LossStage.MIN_SIMILARITY: "它的相似度为 {value}（余弦 {cosine}），低于下限 {threshold}，而且{words}。",
        LossStage.DUPLICATE: "有一条更新的记忆内容与它相同：{other}。",
        LossStage.RANK: "它排第 {place}，而 {group} 组只取 {top_k} 条。",
        LossStage.NEAR_TWIN: "它与 {other} 同名，是它的另一个版本：余弦为 {value}，界限为 {threshold}。",
        LossStage.DIVERSITY: (
            "按相关度它排第 {relevance_rank}，但其他记忆与已选结果差别更大；与它最接近的是 {other}，余弦为 {value}。"
        ),
        LossStage.WRITER_CAP: (
            "前 {capped} 条中已有 {threshold} 条出自同一写入者，又无人为它担保：他人的记忆排在它之前，它排第 {place}。"
        ),
    },
    rank="排第 {rank}",
    no_rank="没有找到",
    words="与查询共有的词（{terms}）只说明了所需的 {share:.0%}",
    no_words="与查询没有共同的词",
    taken="没有记忆含有的词按它的词理解：{pairs}。",
    wrong="{count} 条评价中有 {wrong} 条认为它有误：× {factor}。评价针对现有文本，文本改正后不再计入。",
    helpful="{count} 条评价中有 {helpful} 条认为它有用：× {factor}。",
    remedy="改为 {changes} 后，它会排第 {rank}。",
    none="没有找到能让它被召回的请求改动。",
    cleared="不设 {field}",
    joint="，",
)
