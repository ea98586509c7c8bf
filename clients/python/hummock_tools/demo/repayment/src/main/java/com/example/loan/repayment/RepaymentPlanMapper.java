package com.example.loan.repayment;

import java.time.LocalDate;
import java.util.List;
import org.apache.ibatis.annotations.Insert;
import org.apache.ibatis.annotations.Mapper;
import org.apache.ibatis.annotations.Param;
import org.apache.ibatis.annotations.Select;
import org.apache.ibatis.annotations.Update;

/** 还款计划表的读写。 */
@Mapper
public interface RepaymentPlanMapper {

    @Insert("""
            INSERT INTO repayment_plan (contract_id, period, due_date, principal, interest, status)
            VALUES (#{contractId}, #{period}, #{dueDate}, #{principal}, #{interest}, #{status})
            """)
    void insert(RepaymentPlan plan);

    /** 到期日不晚于给定日期、尚未还清的各期，按合同和期数排列。 */
    @Select("""
            SELECT contract_id, period, due_date, principal, interest, status
            FROM repayment_plan
            WHERE due_date <= #{date} AND status IN ('PENDING', 'OVERDUE')
            ORDER BY contract_id, period
            """)
    List<RepaymentPlan> findDue(@Param("date") LocalDate date);

    /** 只有当前状态与预期一致才更新，返回更新的行数；返回 0 表示已被别的线程处理。 */
    @Update("""
            UPDATE repayment_plan SET status = #{to}
            WHERE contract_id = #{contractId} AND period = #{period} AND status = #{from}
            """)
    int changeStatus(
            @Param("contractId") String contractId,
            @Param("period") int period,
            @Param("from") RepaymentPlan.Status from,
            @Param("to") RepaymentPlan.Status to);

    /** 提前结清：取消合同剩余的各期。 */
    @Update("""
            UPDATE repayment_plan SET status = 'CANCELLED'
            WHERE contract_id = #{contractId} AND status = 'PENDING'
            """)
    int cancelOpen(@Param("contractId") String contractId);
}
