package com.example.loan.repayment;

import java.math.BigDecimal;
import java.time.LocalDate;
import java.util.List;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.stereotype.Service;
import org.springframework.transaction.annotation.Transactional;

/**
 * 还款服务：生成还款计划、执行到期扣款、跟踪还款状态、处理提前结清。
 */
@Service
public class RepaymentService {

    private static final Logger log = LoggerFactory.getLogger(RepaymentService.class);

    private final RepaymentCalculator calculator = new RepaymentCalculator();
    private final RepaymentPlanMapper plans;
    private final LedgerClient ledger;

    public RepaymentService(RepaymentPlanMapper plans, LedgerClient ledger) {
        this.plans = plans;
        this.ledger = ledger;
    }

    /**
     * 放款成功后由放款模块调用：按合同约定的还款方式生成还款计划并落库。
     *
     * <p>第一期在放款日的下个月同日到期；下个月没有这一天时取月末。
     */
    @Transactional
    public List<Installment> createPlan(
            String contractId, RepaymentType type, BigDecimal principal, BigDecimal annualRate, int periods,
            LocalDate lentOn) {
        List<Installment> installments = calculator.calculate(type, principal, annualRate, periods);
        for (Installment each : installments) {
            plans.insert(new RepaymentPlan(
                    contractId, each.period(), lentOn.plusMonths(each.period()),
                    each.principal(), each.interest(), RepaymentPlan.Status.PENDING));
        }
        log.info("合同 {} 生成 {} 期还款计划，方式为{}", contractId, periods, type.displayName());
        return installments;
    }

    /**
     * 每日批处理：扣收所有到期的还款。一期失败不影响其他各期。
     *
     * @return 扣款成功的期数
     */
    public int collectDue(LocalDate today) {
        int paid = 0;
        for (RepaymentPlan plan : plans.findDue(today)) {
            if (collect(plan, today)) {
                paid++;
            }
        }
        return paid;
    }

    /** 扣收一期。幂等号由合同与期数组成，所以批处理重跑也不会重复扣款。 */
    private boolean collect(RepaymentPlan plan, LocalDate today) {
        String requestId = plan.contractId() + "-" + plan.period();
        if (ledger.debit(plan.contractId(), plan.total(), requestId)) {
            return move(plan, RepaymentPlan.Status.PAID);
        }
        if (plan.dueDate().isBefore(today) && plan.status() == RepaymentPlan.Status.PENDING) {
            // 余额不足且已过到期日：转为逾期，由逾期模块计算罚息
            move(plan, RepaymentPlan.Status.OVERDUE);
        }
        return false;
    }

    /** 提前结清：一次扣收剩余本金，取消其余各期。 */
    @Transactional
    public boolean settleEarly(String contractId, BigDecimal remainingPrincipal) {
        if (!ledger.debit(contractId, remainingPrincipal, contractId + "-settle")) {
            return false;
        }
        int cancelled = plans.cancelOpen(contractId);
        log.info("合同 {} 提前结清，取消 {} 期", contractId, cancelled);
        return true;
    }

    private boolean move(RepaymentPlan plan, RepaymentPlan.Status to) {
        return plans.changeStatus(plan.contractId(), plan.period(), plan.status(), to) == 1;
    }
}
