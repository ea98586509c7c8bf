"""Chinese words that a gloss leaves out: they say how something is asked or joined, and nothing that can be found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


FREQUENCIES: Final[Mapping[str, int]] = {
    "的": 60_000,
    "在": 15_000,
    "和": 15_000,
    "是": 15_000,
    "一个": 10_000,
    "中": 9_000,
    "为": 8_000,
    "不": 6_000,
    "了": 6_000,
    "将": 6_000,
    "个": 3_000,
}
"""How often the most frequent ones are met among as many words as the glossary's counts are of."""

GLOSS_STOP_WORDS: Final = _words(
    """
    的 了 和 是 在 有 为 与 或 或者 以及 并 并且 而 而且 但 但是 也 都 就 则 被 把 将 从
    到 对 对于 于 以 以便 以下 这 这个 这些 那 那个 那些 该 此 其 它 它们 你 你们 我 我们
    咱们 他 他们 她 您 大家 可以 可 能 能够 会 要 想 想要 需要 应 应当 应该 如果 若 当 时
    时候 的时候 因为 因此 所以 由于 由 通过 使用 用 来 去 不 不是 没 没有 无 非 如 例如 比如
    像 等 等等 某 某个 某些 每 每个 各 各种 任何 所有 一个 一些 一种 一 个 次 只 仅 还 又
    再 更 最 很 太 非常 已 已经 正在 现在 目前 然后 接着 其中 其他 其它 另 另外 即 即使 虽然
    然而 不过 只是 只有 只要 除了 关于 有关 根据 按照 什么 啥 怎么 咋 如何 怎样 怎么样 哪 哪些
    哪个 哪里 哪儿 哪一个 谁 多少 几 几个
    哪几 两个 某条 某一 一条 一个个 多久 多长 多大 吗 呢 吧 啊 呀 嘛 请 请问 帮我 麻烦
    注意 更多 这里 那里 这样 那样 这么 那么 许多 多个 自己 本身 进行 具有 作为 必须 可能 也许
    就是 而是 还是 什么时候 是不是 有没有 能不能 可不可以 会不会 之后 之前 以后 以前 之间 做
    多少次 几次 某种 一次 一下 一样 一起 中 里 里面 内 上 下 外 后 前 是否 么 让 使 得 地
    着 过 先 为什么 为何 干什么 做什么 叫什么 属于哪 位于 地方 在哪 在哪里 在哪儿 哪段 哪部分
    哪一段 哪一行 怎么办 怎么做 怎么写 代码里 代码中 里头 当中 所谓 到底 究竟 一般 通常 分别
    分别是 主要 相关 对应 相应 具体 有什么 有哪些 是什么 是怎么 是如何 会怎么 会如何 时会 后会
    东西 事情 会怎样 怎么回事 的话 全是 之类的 这边 那边 出来 起来 下来 上来 下去 进去 过来
    如何实现 怎么实现 是怎么实现 负责 里的 中的 上的 下的 我们的 它的 这种 那种 之类
    """
)
"""Question words, particles, pronouns, and what joins them; they are pieces of a cut too, so that no term is read
across them."""
