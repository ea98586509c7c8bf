-- 还款计划：一份合同的每一期一行
CREATE TABLE repayment_plan (
    contract_id VARCHAR(32)    NOT NULL COMMENT '合同编号',
    period      INT            NOT NULL COMMENT '期数，从 1 开始',
    due_date    DATE           NOT NULL COMMENT '到期日',
    principal   DECIMAL(18, 2) NOT NULL COMMENT '应还本金',
    interest    DECIMAL(18, 2) NOT NULL COMMENT '应还利息',
    status      VARCHAR(16)    NOT NULL COMMENT '待还 PENDING，已还 PAID，逾期 OVERDUE，取消 CANCELLED',
    PRIMARY KEY (contract_id, period),
    KEY idx_due (due_date, status)
);
