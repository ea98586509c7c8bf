package dev.hummock.example

import dev.hummock.client.HummockClient
import dev.hummock.shaded.com.google.protobuf.FieldMask
import dev.hummock.v1.Memory
import dev.hummock.v1.codeFragment
import dev.hummock.v1.domainKnowledge
import dev.hummock.v1.learningRecord
import dev.hummock.v1.memory
import dev.hummock.v1.projectInfo
import dev.hummock.v1.updateProjectRequest
import java.io.FileDescriptor
import java.io.FileOutputStream
import java.io.PrintStream
import java.time.Duration
import kotlin.system.exitProcess
import kotlinx.coroutines.runBlocking

private const val PROJECT = "loan-service"
private const val USER_REQUEST = "增加先本后息的还款方式"

/** Long, for a program that has only just started and shows one prompt. */
private val BUDGET = Duration.ofSeconds(30)

/** Teaches the service (HUMMOCK_TARGET) what a plugin's background work has found out, and prints a system prompt. */
fun main() {
    val prompt = HummockClient().use { client ->
        client.warmUp(PROJECT)
        runBlocking {
            teach(client)
            val dispatcher = PromptDispatcherWithMemory(
                { session -> "你是 ${session.projectName} 的编程助手。先理解需求，再修改代码。" },
                client,
                BUDGET,
            )
            dispatcher.buildEnhancedSystemPrompt(Session("s-1", "贷款系统"), PROJECT, USER_REQUEST)
        }
    }
    // The environment's encoding is not to change what is said.
    PrintStream(FileOutputStream(FileDescriptor.out), true, Charsets.UTF_8).apply { print(prompt); flush() }
    exitProcess(0)
}

private suspend fun teach(client: HummockClient) {
    client.learn(PROJECT, listOf(repayment(), types(), calculation(), typesInCode()))
    client.projects {
        updateProject(
            updateProjectRequest {
                project = PROJECT
                info = projectInfo {
                    techStack += listOf("Spring Boot", "MyBatis", "MySQL")
                    path = "/srv/loan-service"
                }
                updateMask = FieldMask.newBuilder().addPaths("tech_stack").addPaths("path").build()
            },
        )
    }
}

private fun repayment(): Memory = memory {
    id = "domain:还款"
    domainKnowledge = domainKnowledge {
        domain = "还款"
        aliases += "还款方式"
        summary = "还款模块处理还款计划的生成、执行与状态跟踪。"
        keyFiles += listOf("RepaymentService.java", "RepaymentCalculator.java")
    }
}

private fun types(): Memory = memory {
    id = "record:还款方式"
    learningRecord = learningRecord {
        question = "还款方式有哪些类型？"
        answer = "包括等额本息、等额本金、先息后本三种，定义在 RepaymentType 枚举中。"
        sourceFiles += listOf("RepaymentType.java", "RepaymentCalculator.java")
    }
}

private fun calculation(): Memory = memory {
    id = "record:还款计算"
    learningRecord = learningRecord {
        question = "还款计算的核心逻辑是什么？"
        answer = "RepaymentCalculator 按还款方式选择计算策略。"
        sourceFiles += "RepaymentCalculator.java"
    }
}

private fun typesInCode(): Memory = memory {
    id = "code:RepaymentType"
    content = "/** 还款方式 */\npublic enum RepaymentType { EQUAL_INSTALLMENT, EQUAL_PRINCIPAL, INTEREST_FIRST }"
    codeFragment = codeFragment {
        path = "src/main/java/RepaymentType.java"
        startLine = 3
        endLine = 4
        language = "java"
        symbol = "RepaymentType"
    }
}
