"""Tells small talk among what is said in a conversation: greetings, thanks, fillers, moods that say nothing of why.

By tables of words, one per language. Every word has to be in them: "I'm tired" is small talk, "I'm tired of Lima" is
not, so that a fact is not lost for an unknown word.
"""

from __future__ import annotations

import re
from typing import Final

from hummock.text.normalise import CJK, is_han, nfkc, simplified
from hummock.text.questions import MOST_SMALL_TALK_CHARACTERS, SMALL_TALK, SMALL_TALK_ZH, asks

_ENGLISH: Final = re.compile(
    rf"{SMALL_TALK}|aw+|yay+|ugh+|phew|hmm+|mhm+|uh|um|huh|ya|nah|hehe+|hahaha+|lmao|"
    r"m|ll|ve|d|t|don|im|me|my|to|the|of|at|be|am|are|was|do|did|have|had|been|feel|feeling|feels|felt|an|with|not|"
    r"never|mind|gotta|gonna|wanna|want|need|saying|said|old|usual|another|normal|ordinary|boring|off|home|awake|hi|"
    r"just|really|kinda|kind|sort|bit|little|quite|pretty|too|super|totally|still|again|also|but|because|maybe|guess|"
    r"think|know|believe|mean|hope|wish|let|say|talk|chat|"
    r"how|why|who|doing|up|here|around|back|soon|tomorrow|today|tonight|yesterday|day|days|week|time|weekend|"
    r"bored|tired|sleepy|exhausted|happy|glad|sad|lonely|down|blue|angry|annoyed|upset|stressed|anxious|nervous|calm|"
    r"excited|relaxed|better|worse|bad|terrible|awful|meh|weird|lazy|moody|"
    r"miss|love|like|care|hug|hugs|kiss|kisses|dear|sweet|dreams|sleep|rest|luck|take|see|wait|nothing|anything|"
    r"hiya|heya|howdy|sup|yo|oops|whoops|ouch|omg|brb|gtg|ttyl|nvm|idk|tbh|cya|worries|problem|pleasure|best|greatest|"
    r"can|cannot|could|would|should|shall|will|might|must|won|couldn|wouldn|isn|aren|didn|doesn|haven|hasn|wasn|"
    r"come|coming|get|getting|make|makes|made|any|some|few|less|only|almost|already|yet|always|ever|often|usually|"
    r"sometimes|forever|anyway|anyways|whatever|honestly|actually|basically|literally|obviously|seriously|definitely|"
    r"absolutely|certainly|probably|perhaps|course|way|lots|tons|sorta|bed|wake|woke|asleep|sleeping|resting|relax|chill|"
    r"bless|congrats|congratulations|cheers|appreciate|grateful|worried|scared|confused|frustrated|overwhelmed|hopeless|"
    r"hopeful|proud|curious|surprised|shocked|hungry|thirsty|cold|hot|warm|cry|crying|smile|laugh|laughing|joking|"
    r"kidding|friend|buddy|mate|dude|bro|babe|honey|darling|guys|everyone|everybody|someone|nobody|we|us|they|them|"
    r"everything|something|stuff|things|mood|rough|long|busy|funny|lovely|true|right|agreed|enjoy|fun|same|here"
)
_CHINESE: Final = re.compile(
    f"(?:{SMALL_TALK_ZH}|累|困|乏|开心|高兴|快乐|难过|伤心|无聊|郁闷|烦|生气|孤单|寂寞|焦虑|紧张|压力大|心累|心情|"
    "舒服|难受|委屈|害怕|放松|忙|懒|丧|低落|崩溃|激动|期待|幸福|糟糕|糟|差|"
    "在吗|在不在|在干嘛|在干什么|在做什么|干嘛|干什么|忙什么|怎么样|怎么|如何|什么|为什么|"
    "想你|爱你|想我|抱抱|抱|么么|亲亲|摸摸|加油|晚点|等等|等我|稍等|聊|聊天|聊聊|陪我|睡觉|睡|休息|起床|醒|吃饭|吃|做梦|好梦|"
    "今天|今晚|明天|昨天|现在|刚刚|刚才|最近|这会儿|一天|周末|时间|"
    "觉得|感觉|感到|有点|有些|一点|比较|还|还行|还好|一般|超|超级|特别|非常|挺|又|只|只是|其实|反正|可能|大概|应该|"
    "想|要|能|会|有|给|跟|和|在|到|回来|回|来|走|看|听|哎|唉|呜|嘻|嘿|咦|诶|额|呃|喂|哼|切|嘛|哒|啦|呐|喽|咯|"
    "睡不着|感动|压力|说什么|该|回头|漫长|终于|突然|马上|已经|一直|总是|老是|经常|偶尔|永远|每天|所有|别|让|被|把|对|为|"
    "因为|但是|但|可是|不过|而且|如果|虽然|或者|做|搞|弄|过|着|得|地|样子|个|次|多|少|久|快|慢|晚|安慰|祝|愿|希望|喜欢|讨厌|"
    "哭|笑|可爱|牛|赞|酷|温柔|饿|渴|冷|热|哈喽|哎呀|天哪|"
    "真的|好的|好吧|算了|随意|无所谓|一样|同感|老样子|普通|平常|平淡|日子|早点|下班|上班|到家|动|起来|死了|坏了|没什么|没啥|啥|事|他|她|它|们|自己|人家|宝贝|亲爱的|朋友)+"
)
_UNIT: Final = re.compile(rf"[{CJK}]+|[^\W\d_{CJK}]+|\d+")
_LEAST_OF_NAME: Final = re.compile(r"[A-Z][a-z]*[A-Z]|[A-Z]{2,}|[@#/\\=<>{}$%&+]|\w[.:]\w")
"""A sign or a word of code, an address, an acronym."""


def tells_nothing(said: str) -> bool:
    """Whether a side of a turn names nothing: "good morning", 嗯嗯, "I'm so tired", 今天有点累, 😀."""
    if len(said) > MOST_SMALL_TALK_CHARACTERS or _LEAST_OF_NAME.search(said.strip(" OK!.")):
        return False
    units = _UNIT.findall(simplified(nfkc(said)).casefold())
    return all((_CHINESE if is_han(unit) else _ENGLISH).fullmatch(unit) for unit in units)


def is_awaited(before: str) -> bool:
    """Whether a text asks for an answer that tells something, even a mere yes: what it asks is no small talk itself."""
    return asks(before) and not tells_nothing(before)
