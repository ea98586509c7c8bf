package com.example.loan.repayment;

import java.math.BigDecimal;

/**
 * 一期应还款。
 *
 * @param period    期数，从 1 开始
 * @param principal 应还本金，单位元，保留两位小数
 * @param interest  应还利息，单位元，保留两位小数
 */
public record Installment(int period, BigDecimal principal, BigDecimal interest) {

    /** 本期应还总额。 */
    public BigDecimal total() {
        return principal.add(interest);
    }
}
