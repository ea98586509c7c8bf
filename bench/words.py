"""The vocabularies and sentences of the synthetic corpus. A field in braces is drawn anew each time: see `corpus`."""

from __future__ import annotations

ZH_FIRST = (
    "还款", "账单", "订单", "库存", "用户", "支付", "退款", "优惠券", "缓存", "日志", "索引", "会话", "权限", "消息",
    "任务", "合同", "利率", "额度", "物流", "发票", "地图", "角色", "道具", "剧情", "向量", "模型", "接口", "数据库",
    "配置", "报表",
)  # fmt: skip
ZH_SECOND = (
    "计划", "流程", "服务", "策略", "队列", "状态", "规则", "模板", "中心", "网关", "明细", "校验", "快照", "分区",
    "窗口", "通知", "历史", "上限", "主键", "备份", "入口", "版本", "字段", "批次", "映射", "回调", "阈值", "标签",
    "记录", "清单",
)  # fmt: skip
ZH_VERBS = (
    "加锁", "重试", "合并", "归档", "校准", "回滚", "拆分", "同步", "更新", "撤销", "冻结", "预热", "推送", "清理",
    "补录", "排序",
)  # fmt: skip
EN_FIRST = (
    "repayment", "invoice", "order", "stock", "account", "payment", "refund", "coupon", "cache", "log", "index",
    "session", "permission", "message", "task", "contract", "interest", "credit", "shipping", "ledger", "map",
    "character", "item", "quest", "vector", "model", "endpoint", "database", "settings", "report",
)  # fmt: skip
EN_SECOND = (
    "plan", "flow", "service", "policy", "queue", "state", "rule", "template", "centre", "gateway", "detail", "check",
    "snapshot", "partition", "window", "notice", "history", "limit", "key", "backup", "entry", "version", "field",
    "batch", "mapping", "callback", "threshold", "label", "record", "list",
)  # fmt: skip
EN_VERBS = (
    "lock", "retry", "merge", "archive", "adjust", "revert", "split", "sync", "update", "cancel", "freeze", "warm",
    "push", "clean", "backfill", "sort",
)  # fmt: skip
TAGS = (
    "code", "decision", "还款", "bug", "api", "设计", "performance", "测试", "release", "数据", "security", "约定",
    "frontend", "运维", "glossary", "世界观",
)  # fmt: skip
SPEAKERS = ("林岚", "Ada", "周舟", "Noor", "assistant")

ZH_SENTENCES = (
    "{zn}变更之后必须先{zv}，再处理{zn}。",
    "我们决定用{zn}代替{zn}，因为高峰期每秒有{nu}次请求。",
    "{zn}出错时不要{zv}，等 {nu} 秒后由{zn}接手。",
    "上线前检查{zn}和{zn}是否一致，入口在 {sy}。",
    "{zn}的默认值是 {nu}，由 {fn} 读取。",
    "客户反馈{zn}偶尔丢失，原因是{zn}没有{zv}。",
)
EN_SENTENCES = (
    "The {en} has to {ev} before the {en} is touched.",
    "We chose the {en} over the {en} because it survives {nu} requests a second.",
    "When the {en} fails, {ev} it and wait {nu} seconds for the {en}.",
    "Check {sy} first: it decides whether the {en} may {ev}.",
    "The {en} defaults to {nu} and is read by {fn}.",
    "A user lost the {en} since nobody would {ev} the {en}.",
)
ZH_QUESTIONS = ("{zn}应该怎么{zv}？", "为什么{zn}会影响{zn}？", "{sy} 里的{zn}在哪里配置？", "增加{zn}的{zn}")
EN_QUESTIONS = (
    "how do we {ev} the {en}",
    "why does the {en} depend on the {en}?",
    "where is the {en} set in {sy}",
    "{fn} fails for the {en}",
)

PYTHON_LINES = (
    "    {id} = {fn}({id}, limit={nu})",
    "    if {id} is None:  # {zn}",
    '        raise {sy}Error("the {en} cannot {ev}")',
    "    for {id} in {id}.{fn}():",
    "        {id}.{fn}({nu})",
    "    # The {en} may {ev} twice.",
    "    return {fn}({id}, {id})",
)
KOTLIN_LINES = (
    "    val {id} = {fn}({id}, limit = {nu})",
    "    // {zn}要先{zv}",
    '    require({id} > {nu}) {{ "the {en} cannot {ev}" }}',
    "    {id}.forEach {{ {fn}(it) }}",
    "    {id}?.let {{ {sy}.{fn}(it) }}",
    "    return {sy}({id})",
)
