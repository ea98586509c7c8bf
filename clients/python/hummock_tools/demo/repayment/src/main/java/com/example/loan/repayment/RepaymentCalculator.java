package com.example.loan.repayment;

import java.math.BigDecimal;
import java.math.MathContext;
import java.math.RoundingMode;
import java.util.ArrayList;
import java.util.List;

/**
 * 还款计算器：根据不同的还款方式调用不同的计算策略，得到每一期的本金与利息。
 *
 * <p>每期金额四舍五入到分，零头由最后一期补齐，各期本金之和恒等于贷款本金。
 */
public class RepaymentCalculator {

    private static final MathContext PRECISION = MathContext.DECIMAL64;
    private static final BigDecimal MONTHS_PER_YEAR = BigDecimal.valueOf(12);

    /**
     * 计算还款计划。
     *
     * @param type       还款方式
     * @param principal  贷款本金，单位元，必须大于零
     * @param annualRate 年利率，例如 0.048 表示 4.8%
     * @param periods    期数（月），必须大于零
     * @return 按期数排列的应还款
     */
    public List<Installment> calculate(
            RepaymentType type, BigDecimal principal, BigDecimal annualRate, int periods) {
        if (principal.signum() <= 0 || periods <= 0) {
            throw new IllegalArgumentException("本金与期数必须大于零");
        }
        BigDecimal monthlyRate = annualRate.divide(MONTHS_PER_YEAR, PRECISION);
        return switch (type) {
            case EQUAL_INSTALLMENT -> equalInstallment(principal, monthlyRate, periods);
            case EQUAL_PRINCIPAL -> equalPrincipal(principal, monthlyRate, periods);
            case INTEREST_FIRST -> interestFirst(principal, monthlyRate, periods);
        };
    }

    /**
     * 等额本息。每期总额 = 本金 × 月利率 × (1+月利率)^期数 ÷ ((1+月利率)^期数 − 1)。
     */
    private List<Installment> equalInstallment(BigDecimal principal, BigDecimal monthlyRate, int periods) {
        if (monthlyRate.signum() == 0) {
            // 零利率时公式的分母为零，退化为等额本金
            return equalPrincipal(principal, monthlyRate, periods);
        }
        BigDecimal growth = BigDecimal.ONE.add(monthlyRate).pow(periods, PRECISION);
        BigDecimal total = toCents(principal.multiply(monthlyRate).multiply(growth)
                .divide(growth.subtract(BigDecimal.ONE), PRECISION));
        List<Installment> plan = new ArrayList<>(periods);
        BigDecimal remaining = principal;
        for (int period = 1; period <= periods; period++) {
            BigDecimal interest = toCents(remaining.multiply(monthlyRate));
            // 最后一期还清剩余本金，补齐舍入产生的零头
            BigDecimal part = period == periods ? remaining : total.subtract(interest);
            plan.add(new Installment(period, part, interest));
            remaining = remaining.subtract(part);
        }
        return plan;
    }

    /**
     * 等额本金。每期本金 = 贷款本金 ÷ 期数，利息按剩余本金计算。
     */
    private List<Installment> equalPrincipal(BigDecimal principal, BigDecimal monthlyRate, int periods) {
        BigDecimal share = principal.divide(BigDecimal.valueOf(periods), 2, RoundingMode.HALF_UP);
        List<Installment> plan = new ArrayList<>(periods);
        BigDecimal remaining = principal;
        for (int period = 1; period <= periods; period++) {
            BigDecimal interest = toCents(remaining.multiply(monthlyRate));
            BigDecimal part = period == periods ? remaining : share;
            plan.add(new Installment(period, part, interest));
            remaining = remaining.subtract(part);
        }
        return plan;
    }

    /**
     * 先息后本。前面各期只还利息，最后一期归还全部本金和当期利息。
     */
    private List<Installment> interestFirst(BigDecimal principal, BigDecimal monthlyRate, int periods) {
        BigDecimal interest = toCents(principal.multiply(monthlyRate));
        BigDecimal nothing = BigDecimal.ZERO.setScale(2);
        List<Installment> plan = new ArrayList<>(periods);
        for (int period = 1; period <= periods; period++) {
            plan.add(new Installment(period, period == periods ? principal : nothing, interest));
        }
        return plan;
    }

    private static BigDecimal toCents(BigDecimal amount) {
        return amount.setScale(2, RoundingMode.HALF_UP);
    }
}
