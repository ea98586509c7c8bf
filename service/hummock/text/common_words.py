"""Words that people use of anything, so that saying one tells nothing of what is meant.

Both lists are of our own making: the words of questions, of reports, and of requests to a machine. Names of things are
not among them, however common.
"""

from __future__ import annotations

from typing import Final

from hummock.text.stopwords import CHINESE_STOP_WORDS, ENGLISH_STOP_WORDS


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


CHINESE_COMMON_WORDS: Final = CHINESE_STOP_WORDS | _words(
    """
    多少 几个 几年 几次 几种 多大 多久 多长 多高 多远 多数 何时 何地 何种 何处 何人 什么样 哪年 哪一 哪种 哪位 哪天
    哪座 哪家 时候 时间 时期 时代 年代 年份 日期 今年 去年 明年 今天 昨天 明天 每天 每年 每个 上午 下午 晚上 以前
    以后 之前 之后 之间 之一 其中 其他 其它 另外 另一 这样 那样 这种 那种 一些 一种 一样 一起 一直 一般 一定 一次
    两个 两种 三个 四个 五个 第一 第二 第三 最后 最初 最大 最小 最多 最少 最高 最低 最早 最近 最终 首次 首先 然后
    接着 同时 同样 相同 不同 类似 相似 相关 之外 以外 以来 以上 以下 以内 左右 大约 大概 可能 能够 能力 必须 应当
    曾经 已经 仍然 名字 名称 名为 称为 称作 叫做 叫作 被称 又称 所谓 指的 意思 含义 定义 解释 说明 描述 表示 表明
    表达 显示 指出 提到 提及 提出 认为 觉得 相信 知道 了解 发现 找到 看到 得到 获得 取得 收到 接受 接收 给予 提供
    提高 成为 变成 作为 当作 视为 属于 包括 包含 含有 具有 拥有 存在 位于 处于 来自 来源 起源 始于 开始 开展 开放
    结束 停止 完成 成功 失败 实现 实施 实行 执行 进行 举行 举办 发生 发展 发布 发表 发起 出现 造成 导致 引起 影响
    作用 效果 结果 后果 原因 理由 目标 方法 方式 方面 方向 办法 手段 措施 步骤 过程 程序 阶段 情况 状况 状态 条件
    因素 问题 答案 例子 例如 比如 事情 事件 事物 东西 内容 形式 类型 种类 部分 全部 整个 整体 主要 重要 关键 基本
    特别 特殊 特点 特征 普通 常见 常用 知名 有名 使用 利用 采用 运用 应用 用于 用来 用途 需求 要求 请求 希望 想要
    打算 计划 决定 选择 建议 推荐 支持 反对 同意 拒绝 允许 禁止 帮助 协助 参加 参与 加入 进入 离开 到达 前往 返回
    带来 带领 负责 保持 维持 增加 增长 减少 降低 提升 改变 改善 改进 变化 转变 移动 建立 创建 创造 创立 成立 设立
    制作 制定 组成 构成 形成 分为 分成 划分 区分 区别 差别 差异 联系 关系 连接 合作 合并 比较 相比 对比 超过 达到
    不到 至少 至多 大于 小于 数量 数目 数字 总数 平均 比例 百分之 百分比 程度 范围 规模 大小 长度 高度 速度 地方 地区
    地点 位置 人们 人类 个人 自己 别人 大家 活动 行动 行为 群体 告诉 介绍 回答 询问 讨论 分析 检查 尝试 试图 努力
    准备 处理 解决 继续 重新 再次 经常 通常 往往 有时 从来 几乎 非常 十分 更多 更加 许多 很多 大量 大部分 少数 各种
    各个 任何 某些 某个 根据 按照 通过 经过 由于 随着 针对 对应 相应 直接 间接 正式 真正 实际 目前 当前 当时 时段
    当中 之内 关键词 标题 称呼 俗称 简称 别称 来历 背景 优点 缺点 好处 坏处 范围内 所在地 大多 多数人 其余 两者 双方
    前者 后者 上述 下列 如下 如今 近年 近来 晚期 初期 末期 上次 下次 本次 此次 该项 该组 一项 一位 一名 一座 一部
    一家 一场 一条 一段 一篇 一份 一张 一只 一件 一天 一年 数百 数千 数万 上百 上千 成千 若干 一系列 一部分 大约有
    高达 多达 位居 排名 等于 相当于 取决 依赖 依靠 基于 看来 据称 声称 宣称 主张 强调 提醒 说道 写道 问道 促使 促进
    阻止 避免 满足 适合 涉及 关联 看待 面临 承受 遭受 遭到 得出 得知 获取 搜索 更新 输入 输出 加载 设置 检测 确认
    调用 默认
    """
)
"""At these a Chinese sentence can be cut."""

ENGLISH_COMMON_WORDS: Final = ENGLISH_STOP_WORDS | _words(
    """
    about above accord across actual added adding after again against ago all allows almost along already also
    although always among amount another answer any anymore anyone anything appear around ask asked asking
    available back base became because become becomes been before began begin begins behind being believe below
    beside best better between big both bring build but call came cannot cause caused causes certain change
    changed come comes coming common compare complete consider consist contain contains continue create current
    day decide describe described did difference different doing don done down during each early effect either
    else end enough even ever every everything example exist explain explained fact far feel felt few finally
    find fine first follow form former found full further gave general get gets getting give given gives giving
    go goes going gone good got great group half happen happened hard having he held hello help helped her here
    hi high him his however idea important include included includes including increase instead into isn just
    keep keeps kind kinds knew know known large last late later lead leads learn least leave left less let like
    list little long look lot lots made main major make makes making many may maybe mean means meant member
    might more most mostly much must name near need needed needs never new next no none nor normal not nothing
    now number occur occurred off offer often ok okay old once one only open order other others out over own
    part particular people per percent perform perhaps period person place point possible possibly present
    problem produce provide purpose put question quite rather really reason receive received refer referred
    relate remain report result right run said same saw say says second see seem seems seen set several she show
    showed shows side similar since small some someone something sometimes somewhere soon sort speak start
    started starting state stated still stop such support take taken takes taking talk tell tells term thank
    thanks thing things think third though thought three through thus time times today together told too took
    total toward tried tries try trying turn turned turns two type types under understand until up upon us use
    used useful user users uses using usual various very view want wanted wants way ways well went whatever
    whenever whether whichever while whoever whole within without word work works world wrote year yes yet
    """
)
"""Lower case."""
