"""What is said in the made chats of `small_talk`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """What a user tells of himself, and a question that it answers."""

    told: str
    asked: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """One language.

    Attributes:
        events: With a place for one of `things`.
        said: Things on which nothing was told.
        held_out: Small talk that is in no chat, and was written after the tables of `hummock.text.small_talk`.
        greetings: Small talk of the companion; `answers` are other replies.
    """

    facts: tuple[Fact, ...]
    small_talk: tuple[str, ...]
    held_out: tuple[str, ...]
    greetings: tuple[str, ...]
    answers: tuple[str, ...]
    events: tuple[str, ...]
    things: tuple[str, ...]
    said: tuple[str, ...]


_EN: Final = Lines(
    facts=tuple(
        Fact(told=told, asked=asked)
        for told, asked in (
            ("I am allergic to peanuts.", "Which snacks must I avoid?"),
            ("My sister's name is Clara.", "What is my sister called?"),
            ("I work as a nurse in a children's hospital.", "What do I do for a living?"),
            ("My birthday is on the third of April.", "When is my birthday?"),
            ("I grew up in Valparaiso.", "Where did I grow up?"),
            ("My cat is called Biscuit.", "What is the name of my cat?"),
            ("I am learning to play the cello.", "Which instrument am I learning?"),
            ("I broke my left wrist skiing last winter.", "Which injury did I have last winter?"),
            ("I drink my coffee black with cinnamon.", "How do I take my coffee?"),
            ("My landlord is Mr. Okafor.", "Who is my landlord?"),
            ("I am afraid of flying.", "What am I afraid of?"),
            ("My favourite film is Spirited Away.", "Which film do I like best?"),
            ("I have been a vegetarian since college.", "Do I eat meat?"),
            ("I want to run a marathon in Lisbon.", "Where do I want to run a marathon?"),
            ("My grandmother taught me to bake rye bread.", "Who taught me to bake?"),
            ("I drive an old green Volvo.", "What car do I drive?"),
            ("My therapist sees me every Thursday.", "On which day do I see my therapist?"),
            ("I am saving money for a sailing boat.", "What am I saving for?"),
            ("My best friend Tomas lives in Prague.", "Where does Tomas live?"),
            ("I take tablets for my thyroid each morning.", "Which medicine do I take?"),
        )
    ),
    small_talk=(
        *("Good morning!", "Good night", "Hi there", "Hey you"),
        *("hello again", "Morning!", "I'm back", "see you later"),
        *(
            "haha",
            "lol",
            "ok",
            "okay then",
            "yeah",
            "nope",
            "hmm",
            "I see",
            "sure",
            "thanks!",
            "thank you so much",
            "nice",
        ),
        *("I'm so tired", "I'm bored", "feeling a bit sad today", "I feel good", "what's up?", "how are you?", "ugh"),
        *("so sleepy", "had a long day", "miss you"),
        *("love you", "I'm really happy right now", "I feel lonely tonight"),
        *("never mind", "just saying hi", "not much going on", "same old, same old", "gotta go, bye"),
        *("evening!", "hiya", "howdy", "sup", "good afternoon to you"),
        *("still awake?", "can't sleep", "yay", "oh no", "oops"),
        *("no worries", "my pleasure", "you're the best", "that's great", "so true", "I need a hug", "what a day"),
        *("I feel awful", "I'm fine, thanks", "let's talk later", "talk to you tomorrow", "sweet dreams", "brb"),
    ),
    held_out=(
        *("rise and shine", "how's it going?", "how have you been?"),
        *("long time no see", "pleased to meet you", "take it easy"),
        *("I'm off to bed", "that made me laugh", "give me a minute"),
        *("you made my day", "whatever you say", "oh well"),
        *("fair enough", "I'm in a bad mood", "today was rough", "let me think"),
    ),
    greetings=("Good to see you!", "Hello you!", "Sleep well!", "Aww, take care.", "Haha, okay!", "I'm here for you."),
    answers=(
        "That sounds like something worth remembering; tell me more whenever you like.",
        "Thank you for telling me, I would love to hear how that goes on from here.",
        "I can imagine how that was for you, and what came of it afterwards.",
    ),
    events=(
        "I bought a {} at the flea market this afternoon.",
        "My neighbour borrowed my {} and has not brought it back.",
        "At work somebody talked about a {} for an hour.",
        "I dreamt of a {} on a roof last night.",
        "There was a documentary on the {} on television.",
    ),
    things=("lamp", "bicycle", "kettle", "typewriter", "ladder", "violin case", "globe", "camera", "tent", "mirror"),
    said=(
        *("Tell me something about volcanoes.", "What shall I cook tonight?", "I need a title for my talk."),
        *("The train was late again.", "It rained all afternoon.", "Which book should I read next?"),
        *("Explain tides to me.", "I have to write a letter to the bank.", "The printer is out of ink."),
        *("Do you know a good joke?", "How do planes stay up?", "My phone needs a new screen."),
        *("I should water the plants.", "The soup was too salty.", "What is a fair price for a used desk?"),
        *("Somebody parked in front of the gate.", "How long do eggs keep?", "Is it going to snow?"),
        *("The meeting was moved.", "I cannot find my keys."),
    ),
)
_ZH: Final = Lines(
    facts=tuple(
        Fact(told=told, asked=asked)
        for told, asked in (
            ("我对花生过敏。", "哪些零食我不能吃？"),
            ("我妹妹叫林小雨。", "我妹妹叫什么名字？"),
            ("我在儿童医院当护士。", "我是做什么工作的？"),
            ("我的生日是四月三号。", "我的生日是哪天？"),
            ("我是在泉州长大的。", "我在哪里长大？"),
            ("我养的猫叫饼干。", "我的猫叫什么？"),
            ("我正在学大提琴。", "我在学什么乐器？"),
            ("去年冬天滑雪摔断了左手腕。", "我去年冬天受了什么伤？"),
            ("我喝咖啡只加肉桂，不加糖。", "我喝咖啡加什么？"),
            ("我的房东姓欧阳。", "我的房东姓什么？"),
            ("我特别怕坐飞机。", "我最怕什么交通工具？"),
            ("我最喜欢的电影是千与千寻。", "我最喜欢哪部电影？"),
            ("我从大学开始就吃素。", "我吃肉吗？"),
            ("我想去里斯本跑一次马拉松。", "我想去哪里跑马拉松？"),
            ("外婆教会我烤黑麦面包。", "谁教我烤面包的？"),
            ("我开一辆绿色的旧沃尔沃。", "我开什么车？"),
            ("我每周四去看心理医生。", "我星期几看心理医生？"),
            ("我在攒钱买一条帆船。", "我攒钱想买什么？"),
            ("我最好的朋友阿哲住在布拉格。", "阿哲住在哪里？"),
            ("我每天早上要吃甲状腺的药。", "我每天吃什么药？"),
        )
    ),
    small_talk=(
        *(
            "早上好",
            "早呀",
            "晚安",
            "在吗",
            "在干嘛呢",
            "你好呀",
            "我回来啦",
            "下班了",
            "哈哈",
            "哈哈哈哈",
            "嗯嗯",
            "好的",
            "好吧",
        ),
        *(
            "行",
            "没事",
            "谢谢你",
            "太好了",
            "真的吗",
            "是啊",
            "哎",
            "唉，好累",
            "今天好累啊",
            "好困",
            "有点难过",
            "心情不太好",
        ),
        *(
            "今天很开心",
            "好无聊",
            "想你了",
            "抱抱",
            "吃饭了吗",
            "我去睡了",
            "先这样吧",
            "没什么，就是想聊聊",
            "你怎么样",
            "嘿嘿",
        ),
        *("烦死了", "随便啦", "不想动", "又是普通的一天"),
        *("晚上好", "中午好呀", "哈喽", "你睡了吗", "还没睡呢"),
        *("睡不着", "我醒了", "哦哦", "知道啦", "明白了", "没关系的"),
        *("不客气", "你真好", "好感动", "好开心呀"),
        *("今天心情特别好", "压力好大", "不知道该说什么", "陪我聊聊天吧", "那我先忙了"),
        *("回头聊", "明天见", "拜拜啦", "呜呜", "真是漫长的一天"),
    ),
    held_out=(
        *("早安呀宝贝", "你在忙吗", "好久不见", "我先去洗澡了", "今天状态很差", "好烦躁", "心里空空的", "笑死我了"),
        *("我也是", "说得对", "有道理", "辛苦你了", "等我一下", "我到家了", "晚安啦，做个好梦", "别担心"),
    ),
    greetings=("早安呀！", "晚安，好梦。", "抱抱你。", "哈哈，好呀。", "我在呢。", "辛苦啦，早点休息。"),
    answers=(
        "谢谢你告诉我这些，以后想起什么细节，随时都可以再跟我讲讲那时候的情形。",
        "听起来这件事对你挺重要的，我很想知道后来又发生了哪些变化，慢慢说给我听就好。",
        "我能想象当时的画面，要是以后还有类似的经历，也请一定记得分享给我听。",
    ),
    events=(
        "下午在旧货市场买了一个{}。",
        "邻居借走了我的{}，一直没还。",
        "同事开会时讲了一小时的{}。",
        "昨晚梦见屋顶上有一个{}。",
        "电视上放了一部关于{}的纪录片。",
    ),
    things=("台灯", "自行车", "水壶", "打字机", "梯子", "琴盒", "地球仪", "相机", "帐篷", "镜子"),
    said=(
        *("给我讲讲火山吧。", "晚上做什么菜好？", "我的演讲要起个题目。", "地铁又晚点了。", "下了一下午的雨。"),
        *(
            "接下来读哪本书？",
            "解释一下潮汐。",
            "要给银行写封信。",
            "打印机没墨了。",
            "你会讲笑话吗？",
            "飞机为什么能飞？",
        ),
        *("手机屏幕该换了。", "该给植物浇水了。", "汤太咸了。", "二手书桌多少钱合适？", "有人把车停在门口。"),
        *("鸡蛋能放多久？", "会下雪吗？", "会议改期了。", "钥匙找不到了。"),
    ),
)

LINES: Final[Mapping[str, Lines]] = {"en": _EN, "zh": _ZH}
"""By language."""
