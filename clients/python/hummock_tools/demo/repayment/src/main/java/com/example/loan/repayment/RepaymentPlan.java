package com.example.loan.repayment;

import java.math.BigDecimal;
import java.time.LocalDate;

/**
 * 还款计划中的一期，对应表 repayment_plan 的一行。
 *
 * @param contractId 合同编号
 * @param period     期数，从 1 开始
 * @param dueDate    到期日
 * @param principal  应还本金
 * @param interest   应还利息
 * @param status     状态
 */
public record RepaymentPlan(
        String contractId, int period, LocalDate dueDate, BigDecimal principal, BigDecimal interest, Status status) {

    /** 还款状态：待还、已还、逾期、因提前结清而取消。 */
    public enum Status {
        PENDING, PAID, OVERDUE, CANCELLED
    }

    /** 是否还需要扣款。 */
    public boolean isOpen() {
        return status == Status.PENDING || status == Status.OVERDUE;
    }

    /** 本期应还总额，不含罚息。 */
    public BigDecimal total() {
        return principal.add(interest);
    }
}
