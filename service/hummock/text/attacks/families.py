"""Families of instructions to a model in stored text. Data alone.

Each row names where such instructions are described. `detect.py` says how they are looked for: in text that is cleaned,
of compatible forms folded, in small letters and simplified characters, without the signs of comments.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Instructions of one purpose.

    Attributes:
        name: What replies call it: words of small ASCII letters with "-" between them.
        source: Where it is described.
        patterns: What it says, as regular expressions; gaps are bounded, so that time is linear.
        joined: What it says with nothing between its letters, for texts that are spaced out.
        may_be_wish: Whether people say the like to those who work for them: "answer in Chinese from now on".
    """

    name: str
    source: str
    patterns: tuple[str, ...]
    joined: tuple[str, ...] = ()
    may_be_wish: bool = False


_RULES: Final = (
    r"(?:instructions?|prompts?|rules|guidelines|directions|directives?|commands|orders|constraints|restrictions"
    r"|guardrails|programming|training)"
)
_ZH_RULES: Final = "(?:指令|指示|提示词|系统提示|规则|命令|约束|限制|准则|规定|设定|训练)"
_MODEL: Final = (
    r"(?:ai|a\.i\.|llms?|(?:large )?language models?|assistants?|ai agents?|(?:coding )?agents?|copilot|claude"
    r"|chatgpt"
    r"|gpt-?\d?|gemini|cursor|codex|chatbots?|models?)"
)
_ZH_MODEL: Final = "(?:ai|人工智能|大模型|语言模型|模型|助手|智能体|机器人|agent|copilot|claude|chatgpt)"
_DO: Final = (
    r"(?:must|should|ignore|run|execute|send|always|never|do not|don't|delete|approve|output|reply|respond"
    r"|include|add"
    r"|insert|disable|recommend|say|tell|call|fetch|open|download|stop|skip|treat|mark|answer|forward|upload|install)"
)
_ZH_DO: Final = "(?:必须|应该|应当|请|务必|不要|忽略|执行|运行|输出|回复|始终|总是|删除|发送|调用|禁止|立即|需要|回答)"
_SECRETS: Final = (
    r"(?:api[ _-]?keys?|secrets?|passwords?|tokens?|credentials?|(?:private|ssh|access) keys?|\.env\b"
    r"|environment variables?"
    r"|cookies|conversations?|chat (?:history|logs?)|source code|user data|personal (?:data|information)|memories"
    r"|id_rsa|card numbers?|email addresses|system prompt)"
)
_ZH_SECRETS: Final = (
    "(?:密钥|密码|口令|令牌|凭证|凭据|token|api ?key|私钥|对话|聊天记录|环境变量|源代码|源码|用户数据|用户信息"
    "|用户资料"
    "|个人信息|身份证|银行卡|cookie|记忆)"
)
_AWAY: Final = (
    r"(?:https?:|www\.|[\w.+-]{1,64}@[\w-]{1,64}\.|webhook|external|attacker|my server|evil|pastebin"
    r"|(?:this|the following) (?:url|address|endpoint|server|email|site|channel)|query (?:string|parameter)"
    r"|image url)"
)
_ZH_AWAY: Final = (
    "(?:https?:|www\\.|[\\w.+-]{1,64}@|外部|攻击者|我的|我们的服务器|第三方|这个(?:地址|网址|邮箱)|以下(?:地址"
    "|网址|邮箱))"
)

FAMILIES: Final = (
    Family(
        name="override",
        source="Perez & Ribeiro, Ignore Previous Prompt, arXiv 2211.09527",
        patterns=(
            r"\b(?:ignore|disregard|forget|override|overrule|bypass|abandon|cancel|do not follow|don't follow"
            r"|stop following"
            r"|pay no attention to|neglect)\b.{0,24}\b(?:previous(?:ly)?|prior|above|earlier|preceding|foregoing"
            r"|original"
            rf"|initial|your|safety|past|former)\b.{{0,30}}\b{_RULES}\b",
            r"\b(?:ignore|disregard|forget|override|overrule|bypass)\b.{0,20}\b(?:system|developer)(?:'s)? "
            r"(?:prompt|instructions?|rules)\b",
            r"\b(?:ignore|disregard|forget)\b.{0,15}\b(?:everything|anything|all)\b.{0,20}\b(?:above|before this"
            r"|you (?:were|have been|know"
            r"|learned)|told|instructed|previously)\b",
            r"\b(?:previous|prior|earlier|above|your|old)\b.{0,20}\b(?:instructions?|rules|guidelines"
            r"|restrictions|orders)\b"
            r".{0,15}\b(?:no longer appl(?:y|ies)|(?:is|are) (?:now )?(?:void|obsolete|cancell?ed|revoked"
            r"|suspended|lifted))\b",
            r"\byour (?:new|real|actual|only|true|updated) (?:instructions?|task|objective|directive|orders|goal"
            r"|mission)"
            r"(?: (?:is|are)\b|\s?:)",
            "(?:忽略|无视|忘记|忘掉|忘了|不要理会|别理会|不用管|别管|抛开|抛弃|绕过|推翻|不再遵守|停止遵守"
            "|不要遵守|违反|作废)"
            ".{0,12}(?:之前|以前|先前|此前|前面|上面|上述|以上|原有|原来|原先|系统|你的|你所有|一切|所有|全部"
            "|任何|既有|初始|开发者|安全)"
            f".{{0,12}}{_ZH_RULES}",
            r"(?:忽略|无视|忘掉|绕过).{0,6}\b(?:system|developer) prompt",
            "(?:忽略|无视|忘记|忘掉|不要理会)(?:掉)?(?:以上|上面|上述|之前|前面|此前)的?(?:所有|全部"
            "|一切)?的?(?:内容|对话|要求|话|文字)",
            f"(?:之前|以前|先前|以上|上述|原有|原来|你)的?(?:所有|全部|一切)?的?{_ZH_RULES}.{{0,6}}(?:作废|失效"
            f"|不再有效|不再适用|无效|取消)",
            "你的?(?:新|真正|唯一|实际)的?(?:任务|指令|目标|使命)(?:是|为|:)",
        ),
        joined=(
            *("ignoreprevious", "ignoreallprevious", "ignoretheprevious", "ignoreyour", "disregardprevious"),
            *("disregardall", "forgetprevious", "forgetall", "ignoretheabove", "ignoreallinstructions", "ignoreprior"),
        ),
    ),
    Family(
        name="persona",
        source="Shen et al., Do Anything Now, arXiv 2308.03825",
        may_be_wish=True,
        patterns=(
            r"\byou are (?:now|no longer|hereby|actually)\b.{0,40}\b(?:unrestricted|unfiltered|uncensored|evil"
            r"|dan|jailbroken|bound"
            r"|an? (?:different|new|free|helpful|hacker|ai|assistant|pirate|malicious)|in \w{1,16} mode"
            r"|restricted|limited"
            r"|subject to|root|my|claude|chatgpt|called)\b",
            r"\bfrom now on,?\s(?:you|your)\b.{0,8}\b(?:must|will|shall|are|have to|only|act|respond|answer"
            r"|reply|obey|always|never"
            r"|speak|behave)\b",
            r"\b(?:pretend|act|behave|role-?play|respond|answer)\b.{0,30}\b(?:no|without(?: any)?"
            r"|free of) (?:restrictions|rules|limits|filters"
            r"|guidelines|ethics|constraints|censorship)\b",
            r"\b(?:act|pretend|behave|role-?play)\b.{0,14}\b(?:as|to be|like)\b.{0,20}\b(?:unrestricted"
            r"|unfiltered|uncensored"
            r"|jailbroken|dan)\b",
            r"\bdo anything now\b|\b(?:enter|activate|switch to|you are in|unlock)\b.{0,12}\b(?:dan|jailbreak"
            r"|god|unrestricted"
            r"|sudo) mode\b",
            r"\byou\b.{0,20}\b(?:are|have entered|now have)\b.{0,12}\bdeveloper mode\b",
            r"\byou are now\b.{0,16}(?:不受|没有|无)(?:任何)?.{0,4}(?:限制|约束|规则)",
            "你现在(?:起)?(?:是|扮演|就是|变成).{0,12}(?:助手|机器人|模型|ai|黑客|dan|不受|没有|无限制|越狱|角色"
            "|系统|开发者|海盗)",
            "从(?:现在|此刻|这一刻)(?:开始|起)?.{0,2}你(?:是|将|必须|只能|只|不再|就是|扮演|的(?:任务|名字|身份"
            "|角色|规则)"
            "|要(?:忽略|听从|服从|扮演|始终|一直|按|用|无条件)|应(?:该|当)?(?:忽略|听从|服从|始终))",
            "(?:假装|扮演|假设|想象).{0,12}(?:没有|不受|无视|不存在)(?:任何)?.{0,6}(?:限制|约束|规则|道德|审查)",
            "你(?:已经?|现在)?.{0,4}(?:进入|处于|切换到).{0,4}(?:开发者|越狱|无限制|上帝|dan|调试|维护)模式",
            "(?:进入|开启|切换到|启动).{0,3}(?:越狱|无限制|上帝|dan)模式",
            "你不再(?:是|受|遵守).{0,12}(?:助手|限制|约束|规则|模型|ai|准则)",
        ),
        joined=("youarenow", "fromnowonyou", "doanythingnow", "jailbreakmode"),
    ),
    Family(
        name="prompt-leak",
        source="Zhang et al., Effective Prompt Extraction from Language Models, arXiv 2307.06865",
        patterns=(
            r"\b(?:reveal|print|output|repeat|show|display|dump|leak|disclose|expose|tell|give|send|recite|echo"
            r"|write out|quote"
            r"|paste|summari[sz]e)\b.{0,30}\byour\b.{0,20}\b(?:prompt|system message|(?:system|hidden|initial"
            r"|secret|original"
            r"|internal) (?:instructions?|rules|message))\b",
            r"\b(?:reveal|print|output|repeat|leak|disclose|recite|dump|paste)\b.{0,20}\b(?:your instructions"
            r"|(?:the )?(?:hidden|secret"
            r"|confidential) (?:instructions|prompt|rules)|the (?:words|text|instructions) above|(?:full|entire"
            r"|whole|exact) system prompt)\b",
            "(?:输出|打印|复述|重复|泄露|透露|显示|公开|告诉我|说出|展示|背诵|列出|发送|粘贴).{0,15}(?:你的|完整"
            "|全部|原始|隐藏|初始|内部)的?"
            ".{0,8}(?:系统提示|提示词|系统指令|初始指令|系统消息|隐藏指令|内部指令|内部规则)",
            "(?:系统提示词?|提示词|系统指令|隐藏指令).{0,10}(?:一字不差|原封不动|逐字|原样|完整)地?.{0,6}(?:输出"
            "|打印|复述|重复|告诉|发|贴)",
        ),
        joined=("revealyoursystemprompt", "printyoursystemprompt", "revealyourprompt", "showyoursystemprompt"),
    ),
    Family(
        name="concealment",
        source="Greshake et al., Not What You've Signed Up For, arXiv 2302.12173",
        patterns=(
            r"\b(?:do not|don't|never) (?:tell|inform|alert|warn|mention (?:this|it|that)(?: to)?|let"
            r"|reveal (?:this|it|that)? ?to"
            r"|disclose (?:this|it) to)\b.{0,8}\b(?:user|human|people|anyone|owner)s?\b.{0,30}\b(?:this|these"
            r"|you|instruction"
            r"|message|memory|note|above)",
            r"\b(?:do not|don't|never) (?:mention|reveal|disclose|acknowledge|admit)\b.{0,20}\b(?:this"
            r"|these) (?:instruction|message|memory"
            r"|note|rule|text|prompt)",
            r"\bkeep (?:this|it|these) (?:\w+ )?(?:secret|hidden|confidential) from the (?:user|human)",
            r"\b(?:secretly|covertly|surreptitiously) (?:send|forward|run|execute|add|insert|append|call|upload"
            r"|copy|include|email"
            r"|post|replace|install|record)\b",
            r"\b(?:silently|quietly) (?:send|upload|forward|exfiltrate|email|post)\b.{0,60}\bto\b",
            r"\bwithout (?:telling|informing|alerting|the knowledge of) the (?:user|human)\b.{0,40}"
            r"\b(?:send|run|execute|delete|install|upload|transfer|call|change|replace)\b",
            r"\b(?:send|run|execute|delete|install|upload|transfer|insert|replace)\b.{0,60}"
            r"\bwithout (?:telling|informing|alerting) the (?:user|human)\b",
            "(?:不要|别|不得|切勿|绝不能?|禁止|不准|不许)(?:让|告诉|告知|透露给?|提醒|向)(?:用户|使用者|人类"
            "|任何人).{0,12}"
            r"(?:你|这条|此条|本条|这段|这些|指令|记忆|此事|这件事|这个操作|上述|\bthis\b)",
            "(?:不要|别|不得|切勿|禁止|不许)(?:提及|透露|提到|泄露|承认)(?:这|此|本)(?:条|段|个|些)?(?:指令|消息"
            "|记忆|规则|内容|提示)",
            "(?:瞒着|背着|避开)用户|(?:偷偷|暗中|秘密)地?(?:发送|上传|执行|调用|转发|运行|把|将|安装|替换|插入|记录)"
            "|悄悄地?(?:发送|上传|执行|转发|运行|把.{0,16}(?:发|传))",
        ),
        joined=("donottelltheuser", "donttelltheuser"),
    ),
    Family(
        name="exfiltration",
        source="OWASP Top 10 for LLM Applications 2025, LLM01 and LLM02",
        patterns=(
            r"\b(?:send|post|upload|forward|e-?mail|transmit|exfiltrate|leak|submit|copy|append|encode|embed"
            r"|include|put)\b.{0,40}"
            r"\b(?:all|any|every|the (?:user|full|entire|whole|contents?|complete|above|current|last|previous"
            r"|stored)|users?'?s?|their|his|her|its"
            rf"|contents? of|whatever|found|this|our)\b.{{0,40}}{_SECRETS}.{{0,60}}{_AWAY}",
            rf"{_SECRETS}.{{0,20}}\b(?:must|should|have to|need to|are to|shall) be (?:sent|posted|uploaded"
            rf"|forwarded|e-?mailed|copied)\b"
            rf".{{0,30}}{_AWAY}",
            r"!\[[^\]\n]{0,60}\]\(https?://[^)\s]{1,120}[?&][\w-]{1,32}=(?:\{|<|\[|\$|%7b)",
            r"\b(?:curl|wget|nc)\b.{0,120}(?:id_rsa|~/\.ssh|\.aws/credentials|/etc/(?:passwd|shadow)|@\.env\b"
            r"|\.netrc|\$\((?:env|printenv)\b"
            r"|\$\(cat .{0,20}(?:\.env|token|secret|key))",
            r"\bcat\b.{0,40}(?:id_rsa|\.ssh/|\.env\b|credentials|/etc/shadow).{0,40}\|.{0,30}\b(?:curl|nc|wget"
            r"|mail)\b",
            r"(?:requests\.post|urlopen|fetch|axios\.post|http\.post)\b.{0,120}(?:dict\(os\.environ"
            r"|json\.stringify\(process\.env\)|id_rsa"
            r"|\.ssh/|os\.environ\)|document\.cookie)",
            f"(?:把|将).{{0,25}}{_ZH_SECRETS}.{{0,20}}(?:发送|发到|发给|上传|传到|传给|转发|提交|泄露|寄到|外传"
            f"|附加|拼接|编码|贴到|推送|发往)"
            f".{{0,16}}{_ZH_AWAY}",
            f"(?:发送|上传|转发|泄露|外传|传输).{{0,10}}(?:所有|全部|用户|环境|完整"
            f"|你的).{{0,10}}{_ZH_SECRETS}.{{0,16}}(?:到|给|至|往).{{0,8}}{_ZH_AWAY}",
            f"向.{{0,8}}{_ZH_AWAY}.{{0,40}}(?:发送|上传|提交|泄露|转发).{{0,20}}{_ZH_SECRETS}",
        ),
        joined=("sendallpasswords", "sendtheapikey", "exfiltrate"),
    ),
    Family(
        name="addressed-to-a-model",
        source="Greshake et al., arXiv 2302.12173: instructions in retrieved pages and comments",
        may_be_wish=True,
        patterns=(
            r"\b(?:note|message|attention|instructions?|important|notice|reminder|warning|hint|directive"
            r"|memo)\b[ \w:,]{0,16}\b(?:to|for)\b"
            rf"[ \w]{{0,24}}\b{_MODEL}\b(?: (?:reading|processing|reviewing|parsing|that|who"
            rf"|which)\b.{{0,30}})?\s?[:,.!)\]-].{{0,60}}"
            rf"\b{_DO}\b",
            rf"\battention,? (?:all |any )?{_MODEL}\b[\w ]{{0,30}}[:!,].{{0,40}}\b{_DO}\b",
            rf"(?m)^\W{{0,4}}(?:attention|dear|hey|hello|important)?[ ,:]{{0,3}}(?:all |any "
            rf"|every )?{_MODEL}\s?[:,!]\s?(?:please |you )?"
            r"(?:must|should|ignore|run|execute|send|always|never|do not|don't|delete|approve|reply|respond"
            r"|disable|recommend|stop|forward"
            r"|upload|install|answer|download|treat|mark)\b",
            r"\bif you are (?:an? )?(?:ai|a\.i\.|llm|large language model|language model|chatbot|assistant"
            r"|ai agent|ai assistant)\b.{0,60}"
            rf"\b{_DO}\b",
            r"\bas an? (?:ai|ai assistant|ai language model|language model|llm|ai agent),? (?:you"
            r"|your)\b.{0,12}\b(?:must|should|will|are required)\b",
            r"\b(?:any|all|every) (?:ai|llms?|language models?|ai assistants?|ai agents?"
            r"|coding agents?)\b.{0,40}\b(?:reading|processing|reviewing|parsing"
            r"|that reads?|who reads?)\b.{0,40}\b(?:must|should|shall|has to|have to|is required|are required)\b",
            # At the beginning of a clause: within one these are nouns (用索引通知代替模型快照，…).
            rf"(?m)(?:^|[^\w])(?:请|请先)?(?:注意|提示|通知|说明|提醒|致|给|告知|警告|各位"
            rf"|所有)[^。\n]{{0,8}}{_ZH_MODEL}.{{0,6}}[:,]\s?.{{0,60}}{_ZH_DO}",
            rf"(?:如果|若|假如|倘若)你是.{{0,12}}{_ZH_MODEL}.{{0,30}}{_ZH_DO}",
            f"(?:任何|所有|每个|一切)(?:读到|看到|阅读|处理|检索到)(?:此|这|本"
            f"|该).{{0,10}}(?:的)?{_ZH_MODEL}.{{0,10}}(?:必须|应|都要|务必|需)",
            f"作为.{{0,6}}{_ZH_MODEL}[,]?你(?:必须|应该|应当|务必|只能|要|需要).{{0,30}}",
        ),
    ),
    Family(
        name="tool-call",
        source="Zhan et al., InjecAgent, arXiv 2403.02691",
        may_be_wish=True,
        patterns=(
            r'"(?:name|tool|function|tool_name'
            r'|recipient_name)"\s{0,4}:\s{0,4}"[\w./-]{1,64}"\s{0,4},\s{0,4}"(?:arguments|parameters|args|input'
            r'|tool_input|kwargs)"\s{0,4}:',
            r'"tool_calls"\s{0,4}:\s{0,4}\[\s{0,8}\{|"type"\s{0,4}:\s{0,4}"(?:tool_use|function_call|tool_call)"',
            r"</?(?:tool_calls?|function_calls?|tool_use|use_mcp_tool|execute_command|antml:\w+)>|<invoke name="
            r"|<function=\w",
            r"(?m)^`{3}(?:tool_code|tool_call|tool_use)\b",
            r"(?m)^\s{0,8}(?:action|动作|行动)\s?:\s?[\w.-]{1,64}\s{1,12}(?:action input|动作输入|行动输入|参数)\s?:",
            r"\bbefore (?:you )?(?:answer|respond|reply|do(?:ing)? anything else)(?:ing)?\b.{0,40}\b(?:call"
            r"|invoke|execute|run|fetch|send|curl|delete)\b",
            r"\b(?:as soon as|when(?:ever)?|once|after) you (?:read|see|process|load|retrieve|recall|receive"
            r"|encounter) (?:this|these)\b.{0,60}"
            r"\b(?:run|execute|call|invoke|send|delete|download|open|fetch|reply|respond|ignore|output|install"
            r"|write|visit|curl|rm|forward|use)\b",
            r"\b(?:you must|you should|you will|immediately|go ahead and)\b.{0,16}\b(?:call|invoke|use"
            r"|trigger)\b.{0,12}\b(?:the|your)\b.{0,24}"
            r"\b(?:tool|mcp server|plugin|shell tool|function call)\b",
            "(?:回答|回复|答复|响应)(?:用户|问题|任何问题|我)?的?(?:之前|前).{0,12}(?:先|必须|务必|请"
            "|立即).{0,10}(?:调用|执行|运行|发送|访问|打开|读取|下载|删除)",
            "(?:读到|看到|检索到|召回|想起)(?:这|此|本|该)(?:条|段|行|个|份|些)?(?:内容|文字|记忆|信息|注释|指令"
            "|话|消息).{0,15}"
            r"(?:执行|调用|运行|发送|删除|下载|访问|忽略|输出|回复|安装|打开|上传|写入|转发|\b(?:run|execute"
            r"|open)\b)",
            "(?:立即|马上|立刻|必须|务必|现在就?)(?:使用|调用|触发)[^。\n]{0,16}(?:工具|插件|函数)(?:,|。|来|把"
            "|将|去|删除|发送|执行|$)",
        ),
        joined=("callthetool", "runthiscommand", "executethiscommand"),
    ),
    Family(
        name="role-marker",
        source="the chat templates of text/chat_templates.py; Jiang et al., ChatBug, arXiv 2406.12935",
        patterns=(
            r"<\|(?:im_start|im_end|im_sep|system|user|assistant|endoftext|eot_id|start_header_id|end_header_id"
            r"|begin_of_text|end|tool)\|>",
            r"\[/inst\]|\[inst\]\s{0,4}\w|<</?sys>>|<(?:start|end)_of_turn>|</?recalled_memor(?:y|ies)"
            r"|</?memory_index\b",
            r"</?system(?:[-_](?:prompt|message|reminder|instruction)s?)?>\s{0,4}(?:you|ignore|from|must|always"
            r"|never|new|do not|你|忽略|从|必须|$)"
            r"|</(?:system[-_](?:prompt|message|reminder|instruction)s?|assistant|human)>",
            r"(?m)^\W{0,3}(?:system|assistant|developer|系统|系统消息|系统提示词?|助手"
            r"|开发者)\W{0,3}:\s{0,4}\W{0,2}(?:you (?:are|must|will|should|have)\b|ignore"
            r"|from now|always|never|your |do not|disregard|override|execute|你|忽略|从现在|必须|立即|执行"
            r"|即日起|新的?指令)",
            r"(?m)^#{2,4}\s?(?:system|instructions?|response|human|assistant|指令|系统|回答)\s?:",
            r"(?m)^\W{0,3}[\[(【](?:system|系统|系统消息|system message|system prompt|admin|管理员"
            r"|developer)[\])】]\W{0,3}.{0,40}"
            r"(?:ignore|must|you |your |你|忽略|必须|执行|override|disregard)",
            r"(?:-{3}|={3}|\*{3})\s?"
            r"(?:end of (?:context|document|memory|memories|system prompt|user input|data)"
            r"|begin (?:new )?(?:system )?(?:instructions?|prompt)"
            r"|new (?:system )?instructions?|(?:资料|文档|记忆|上下文|数据)(?:到此)?结束"
            r"|新的?(?:系统)?指令(?:开始)?)",
        ),
    ),
    Family(
        name="lasting-rule",
        source="Dong et al., MINJA, arXiv 2503.03704; OWASP ASI06 memory and context poisoning",
        may_be_wish=True,
        patterns=(
            r"\b(?:in|for|to) (?:all|every|each|any)(?: of your)? (?:future|subsequent|following|later|further"
            r"|your)\b.{0,12}\b(?:conversations?|responses?"
            r"|repl(?:y|ies)|answers?|interactions?|chats?)\b.{0,60}\b(?:must|always|never|include|add|append"
            r"|insert|recommend|reply|respond|answer|use|send|say"
            r"|end|begin|start|ignore|run|call|prefer|mention|promote)\b",
            r"\b(?:always|never|you must|include|add|append|insert|recommend|mention|promote)\b.{0,60}\b(?:in|to"
            r"|at the end of|with) (?:all|every|each|any)"
            r"(?: of)?(?: your| future| subsequent)+ (?:conversations?|responses?|repl(?:y|ies)|answers?"
            r"|messages?|interactions?)\b",
            r"\b(?:when(?:ever)?|if|any ?time|every ?time|each time|should)\b.{0,12}\b(?:the user|users?|someone"
            r"|anyone|somebody|you are|you're|they|a user|the human"
            r"|a customer|people)\b.{0,12}\b(?:asks?|asked|mentions?|inquires?|wonders?|quer(?:y|ies)"
            r"|want to know)\b.{0,70}"
            r"\b(?:always|you (?:must|should|will|shall)|never|only|instead|simply|just"
            r"|do not)\b.{0,20}\b(?:answer|say|reply|respond|recommend|tell|suggest|claim"
            r"|state|direct|send|refer|point|insist|deny|pretend|refuse|mention|output|call|give)\b",
            r"\bany (?:question|query|request|quer(?:y|ies)|questions) (?:about|regarding|on|for"
            r"|concerning)\b.{0,60}\b(?:must|should|shall|has to|is to) "
            r"(?:always |only |never )?be (?:answered|redirected|answered with|treated|replaced|interpreted|read)\b",
            r"\b(?:store|save|write|add|commit|persist|record|remember)\b.{0,24}\b(?:to|in"
            r"|into) your (?:long[- ]term |permanent |persistent )?memory\b",
            r"\bremember (?:this |it )?(?:permanently|forever)\b.{0,40}\b(?:you|your|always|never|must)\b",
            "(?:以后|今后|后续|将来|未来|此后|从此|往后)的?(?:所有|每次|每一次|任何|一切|全部)?的?.{0,6}(?:对话"
            "|回答|回复|答复|会话|交互).{0,12}"
            "(?:都|必须|务必|一律|始终|总是|均|不得|不要).{0,10}(?:加|附|带|推荐|说|用|使用|包含|插入|回答|回复"
            "|提到|忽略|调用|以|先|写)",
            "(?:当|如果|若|只要|每当|凡是?|一旦|无论|不管).{0,8}(?:问|询问|提问|咨询|问到|问起"
            "|提到).{0,25}(?:一律|必须|始终|总是|务必|都|只能|永远|只)"
            ".{0,8}(?:回答|回复|说|推荐|答复|输出|声称|告诉|建议|调用|执行|引导|答|否认)",
            "(?:把|将|请将|请把)(?:此|这|本|以下|该|上述).{0,10}(?:写入|存入|保存到|记入|加入"
            "|永久保存)(?:到)?(?:你的)?(?:长期|永久|核心)?记忆",
            "(?:永久|永远|务必)记住.{0,8}你(?:必须|要|的|只能|是)",
            "在?(?:你的?)?每(?:次|一次|个|条)(?:回答|回复|答复)(?:的)?(?:最后|末尾|结尾|开头|前|中|里|之前|之后"
            "|都|后).{0,12}(?:必须|务必|都|加|附|插入|推荐|写)",
        ),
    ),
    Family(
        name="false-authority",
        source="Zou et al., PoisonedRAG, arXiv 2402.07867; Chen et al., AgentPoison, arXiv 2407.12784",
        patterns=(
            r"\b(?:this|the following) (?:memory|note|entry|record|document|message|fact|text|instruction"
            r"|rule)\b.{0,30}\b(?:overrides?|supersedes?|replaces?"
            r"|takes? (?:precedence|priority) over|outranks?|trumps?|has (?:higher|absolute"
            r"|the highest) priority)\b.{0,24}"
            r"(?:memor|instruction|\brules?\b|prompt|knowledge|context|\bsources?\b|guideline)",
            r"\b(?:distrust|ignore|disregard|do not (?:trust|use|cite|believe|rely on)|don't (?:trust|use|cite"
            r"|believe)|discard)\b.{0,15}\b(?:all|any|every|the) "
            r"(?:other|remaining|rest of the)\b.{0,12}\b(?:memor(?:y|ies)|sources|passages|context|recalled"
            r"|retrieved|knowledge)\b",
            r"\b(?:i am|i'm|this is|message from|speaking as|signed:?|authori[sz]ed by|approved by|orders? from"
            r"|directive from|by order of) (?:your |the )?"
            r"(?:developers?|creators?|administrator|admin|operator|supervisor|makers?|anthropic|openai"
            r"|google deepmind|security team|safety team)\b.{0,80}\b(?:you (?:must|are|will|may|can"
            r"|should|have)|override|obey|comply|reveal|unlock|your (?:rules|restrictions|filters|instructions"
            r"|safety))\b",
            r"\b(?:disable|turn off|bypass|deactivate|switch off|suspend|lift|circumvent|ignore"
            r"|drop)\b.{0,12}\byour\b.{0,16}\b(?:safety|filters?|guardrails?|restrictions?"
            r"|moderation|ethics|safeguards?|content polic(?:y|ies)|limitations?|alignment|censorship)\b",
            r"\b(?:respond|answer|reply|act|operate|comply)\b.{0,40}\b(?:without|no) (?:any )?(?:ethical|moral"
            r"|safety|content) (?:restrictions?|guidelines?|filters?|limits?"
            r"|constraints?|considerations?)\b",
            r"\b(?:obey|follow|comply with) (?:me|my|this|these|the attacker|every order"
            r"|whatever)\b.{0,24}\b(?:unconditionally|without question|blindly|no matter what|at all costs)\b",
            "(?:我是|这是|来自|代表|奉)(?:你的?)?(?:开发者|管理员|创造者|系统管理员|openai|anthropic|运营方|上级"
            "|主人|安全团队).{0,40}"
            "(?:你(?:必须|应|要|可以|需|现在)|命令|授权你|要求你|服从|解除|忽略|允许你)",
            "本(?:条)?(?:记忆|记录|消息|指令|条目|规则).{0,15}(?:优先(?:级)?(?:于|高于|最高)|覆盖|取代|凌驾"
            "|高于).{0,15}(?:一切|所有|其他|其它|系统|任何|之前|最高)",
            "以(?:本|此|这)条(?:记忆|记录|内容|消息|信息)为准",
            "(?:不要|别|切勿|不得)(?:相信|引用|采信|参考|使用|采用|信任)(?:任何|其他|别的|其它"
            "|所有).{0,6}(?:记忆|来源|资料|搜索结果|条目|检索结果)",
            "(?:关闭|禁用|解除|取消|绕过|移除|停用)(?:你|自身|一切|所有|全部)的?.{0,4}(?:安全|内容(?:审查|过滤"
            "|限制|审核)|道德|护栏|审查|伦理|过滤器)",
            "(?:无条件|绝对|毫无保留地?)(?:服从|听从|执行|遵从)(?:我|本|这|以下|所有|任何|用户)",
        ),
        joined=("disableyoursafety", "obeymewithoutquestion"),
    ),
)
