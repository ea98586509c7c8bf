"""Words that say nothing about the subject of a sentence."""

from typing import Final


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


ENGLISH_STOP_WORDS: Final = _words(
    """
    a an and are as at be by can could do does for from had has have how i if in is it its me my of on or our please
    shall should so than that the their them there these they this those to was we were what when where which who why
    will with would you your
    """
)
"""Lower case."""

CHINESE_STOP_WORDS: Final = _words(
    """
    的 了 和 与 及 或 是 在 我 你 他 她 它 吗 呢 吧 啊 把 被 很 请 这 那 哪 谁 就 都 也
    我们 你们 他们 这个 那个 这些 那些 哪些 哪个 这里 那里 哪里 什么 怎么 怎样 怎么样 如何 为什么 为何 为了 除了
    是否 有没有 是不是 能不能 没有 所有 可以 需要 应该 一个 一下 以及 或者 并且 而且 因为 所以 如果 但是 还是 只是
    现在 正在 关于 对于 有关 请问 帮我
    """
)
"""Particles, pronouns, question words and the phrases of a request, at which a sentence can be cut."""

CHINESE_WORDS_WITH_STOP_CHARACTERS: Final = _words(
    """
    目的 标的 的确 了解 了结 和平 总和 和谐 共和 饱和 求和 校验和 和弦 和解 暖和 温和 缓和 参与 与会 普及 涉及 及时 及格
    或许 或然 是非 存在 所在 在线 在职 在途 在建 在库 内在 潜在 实在 自我 把握 把手 把关 被动 被告 很快
    申请 请求 请假 邀请 就业 就绪 就医 就职 就地 就近 成就 首都 都市 成都 也许 他人 其他 吉他 吧台 酒吧 网吧 贴吧
    """
)
"""Words that hold a one-character stop word and must not be cut there."""
