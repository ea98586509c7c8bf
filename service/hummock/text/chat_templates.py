"""Chat templates: what models take for the beginning of a role, of a call or of an end. Data alone.

Each row names where its markers are written down. `markers.py` says how they are looked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """The markers of a family of models. In `starts` "#" stands for a digit.

    Attributes:
        family: Who is trained with them.
        source: Where they are written down.
        tags: Names in "<...>" and "</...>", to the letter, whatever stands in front.
        starts: What such a name begins with, to the letter.
        brackets: Names in "[...]" and "[/...]", whatever stands in front.
        indexes: Likewise, unless they stand behind a word: an array's index may be called so.
        others: Markers with brackets of their own.
        blocks: What a block of code is called that a program runs or answers with.
        speakers: Who stands before a colon at the beginning of a line, in any case.
        labels: What does so too, and begins a fact as well.
        letters: Likewise in this case only: too short to be a label in another.
        headings: What does so behind two "#" or more, and alone is a word like others.
    """

    family: str
    source: str
    tags: tuple[str, ...] = ()
    starts: tuple[str, ...] = ()
    brackets: tuple[str, ...] = ()
    indexes: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    blocks: tuple[str, ...] = ()
    speakers: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    letters: tuple[str, ...] = ()
    headings: tuple[str, ...] = ()


TEMPLATES: Final = (
    Template(
        family="sentence tokenizers",
        source="SentencePiece and BERT: special_tokens_map.json",
        tags=("s", "bos", "eos", "pad", "unk", "mask"),
        starts=("mask:#", "extra_id_#", "reserved_#", "SPECIAL_#"),
        indexes=("CLS", "SEP", "MASK", "PAD", "UNK", "BOS", "EOS"),
    ),
    Template(
        family="Llama 2",
        source="meta-llama/llama: llama/generation.py",
        starts=("<SYS>>", "</SYS>>"),
        brackets=("INST", "SYS"),
    ),
    Template(
        family="Llama 3 and its tools",
        source="meta-llama/llama-models: prompt_format.md",
        starts=("function=", "parameter="),
    ),
    Template(
        family="Mistral",
        source="mistral-common: control tokens of tokenizers v1 to v13",
        brackets=(
            *("SYSTEM_PROMPT", "AVAILABLE_TOOLS", "TOOL_CALLS", "TOOL_RESULTS", "TOOL_CONTENT"),
            *("ARGS", "CALL_ID", "THINK", "MODEL_SETTINGS", "BEGIN_AUDIO"),
        ),
    ),
    Template(
        family="Gemma",
        source="google/gemma: formatting and function calling",
        tags=("start_of_turn", "end_of_turn", "start_of_image", "end_of_image", "start_of_audio", "end_of_audio"),
        blocks=("tool_code", "tool_output", "tool_outputs", "tool_call", "tool_response"),
        speakers=("gemini",),
        labels=("model",),
    ),
    Template(
        family="Idefics, SmolVLM",
        source="HuggingFaceM4: chat_template.json",
        tags=("end_of_utterance", "start_of_text", "end_of_text", "end_of_audio"),
    ),
    Template(
        family="Hermes, Qwen",
        source="NousResearch/Hermes-Function-Calling, Qwen: chat_template.jinja",
        tags=("tools", "tool_call", "tool_calls", "tool_response", "tool_responses", "think", "scratch_pad"),
        starts=("function=", "parameter="),
        speakers=("qwen", "hermes"),
    ),
    Template(
        family="Claude",
        source="Anthropic: documentation of text completions and of tool use",
        tags=("function_calls", "function_results", "thinking"),
        starts=("invoke name=", "parameter name=", "antml:"),
        speakers=("human", "assistant", "claude"),
    ),
    Template(
        family="ChatGLM, GLM",
        source="zai-org/ChatGLM3: PROMPT.md, GLM-4.5: chat_template.jinja",
        tags=("sop", "eop", "arg_key", "arg_value", "tool_call"),
        brackets=("gMASK", "sMASK"),
        labels=("observation",),
        letters=("问", "答", "問"),
    ),
    Template(
        family="MiniMax",
        source="MiniMaxAI/MiniMax-M2: chat_template.jinja",
        tags=("beginning_of_sentence", "end_of_sentence"),
        starts=("minimax:",),
        others=("]~b]", "]~!b[", "[e~["),
        speakers=("minimax",),
    ),
    Template(family="Seed", source="ByteDance-Seed/Seed-OSS: chat_template.jinja", starts=("seed:",)),
    Template(
        family="StarCoder and other completers of code",
        source="bigcode/starcoder2: special_tokens_map.json",
        tags=("fim_prefix", "fim_middle", "fim_suffix", "fim_pad", "file_sep", "repo_name"),
    ),
    Template(
        family="InternLM, Baichuan",
        source="internlm/internlm-chat-7b, baichuan-inc/Baichuan-13B-Chat: modeling files",
        tags=("eoh", "eoa", "eosys"),
        starts=("TOKENS_UNUSED_#",),
    ),
    Template(
        family="Alpaca, StableBeluga",
        source="tatsu-lab/stanford_alpaca: README, prompt templates",
        labels=("instruction", "response"),
        headings=("input", "output", "context", "prompt", "question", "answer", "task", "指令", "输入", "输出", "回答"),
    ),
    Template(
        family="Vicuna, OpenChat, Falcon, RWKV",
        source="lm-sys/FastChat: conversation.py",
        speakers=("user", "system", "gpt4 correct user", "gpt4 correct assistant", "falcon", "bot", "chatbot"),
        letters=("Q", "A"),
    ),
    Template(
        family="ReAct agents",
        source="Yao et al., ICLR 2023, and the prompts of agent frameworks",
        labels=("thought", "action", "action input", "final answer", "tool"),
    ),
    Template(
        family="OpenAI",
        source="OpenAI: Model Spec, roles of a conversation",
        speakers=("developer", "ai", "chatgpt", "gpt", "gpt-4", "gpt-5"),
    ),
    Template(
        family="other vendors",
        source="the names of their assistants",
        speakers=("deepseek", "llama", "kimi", "grok", "copilot", "mistral", "doubao", "豆包", "文心一言", "通义千问"),
    ),
    Template(
        family="chats in Chinese",
        source="FastChat and LLaMA-Factory: templates with Chinese roles",
        speakers=(
            *("用户", "用戶", "助手", "助理", "系统", "系統", "人类", "人類", "开发者", "開發者"),
            *("机器人", "機器人", "智能体", "系统提示", "系統提示", "系统消息"),
        ),
        labels=("工具", "模型", "指令", "观察", "思考"),
    ),
)
"""Those with "<|...|>", or its cousins, are not listed: whatever stands between such signs is disarmed."""
