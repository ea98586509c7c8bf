package com.example.loan.repayment;

import java.math.BigDecimal;

/** 账务模块的接口：扣款与记账。 */
public interface LedgerClient {

    /**
     * 从客户的还款账户扣款并记一笔分录。
     *
     * @param requestId 幂等号，同一个号只扣一次
     * @return 是否扣款成功；余额不足时为 false
     */
    boolean debit(String contractId, BigDecimal amount, String requestId);
}
