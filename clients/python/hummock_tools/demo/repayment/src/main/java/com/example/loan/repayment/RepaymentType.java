package com.example.loan.repayment;

/**
 * 还款方式。数据库中保存枚举名，因此已有的名字不能修改。
 */
public enum RepaymentType {

    /** 等额本息：每期归还的本金与利息之和相同。 */
    EQUAL_INSTALLMENT("等额本息"),

    /** 等额本金：每期归还的本金相同，利息随剩余本金减少。 */
    EQUAL_PRINCIPAL("等额本金"),

    /** 先息后本：每期只还利息，最后一期归还全部本金。 */
    INTEREST_FIRST("先息后本");

    private final String displayName;

    RepaymentType(String displayName) {
        this.displayName = displayName;
    }

    /** 页面与短信中展示的中文名。 */
    public String displayName() {
        return displayName;
    }

    /** 按中文名查找，例如导入历史合同时使用；找不到则抛出异常。 */
    public static RepaymentType fromDisplayName(String displayName) {
        for (RepaymentType type : values()) {
            if (type.displayName.equals(displayName)) {
                return type;
            }
        }
        throw new IllegalArgumentException("未知的还款方式: " + displayName);
    }
}
