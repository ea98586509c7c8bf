package dev.hummock.example

import dev.hummock.client.ClientOptions
import dev.hummock.client.HummockClient
import dev.hummock.client.HummockException
import dev.hummock.client.LlmMessage
import dev.hummock.v1.Preset
import dev.hummock.v1.PromptRole
import dev.hummock.v1.RenderForm
import dev.hummock.v1.appendMessageRequest
import dev.hummock.v1.getMemoryRequest
import dev.hummock.v1.getOrCreateActiveSessionRequest
import dev.hummock.v1.learnTurnRequest
import dev.hummock.v1.memory
import dev.hummock.v1.promptMessage
import dev.hummock.v1.recallRequest
import dev.hummock.v1.renderRequest
import dev.hummock.v1.renderTurnRequest
import dev.hummock.v1.sessionHistory
import dev.hummock.v1.turnSide
import java.nio.file.Path
import java.time.Duration
import java.util.concurrent.TimeUnit.SECONDS
import kotlin.system.exitProcess
import kotlinx.coroutines.flow.first
import kotlinx.coroutines.runBlocking

/** Runs what the documentation shows in Kotlin, against the service at HUMMOCK_TARGET. A test compares the texts. */
fun main() {
    val authorities = Path.of("/etc/hummock/ca.pem")
    val token = "s3cret"
    runBlocking {
        fiveLines()
        check(runCatching { overTls(authorities, token) }.exceptionOrNull() is java.nio.file.NoSuchFileException)
        HummockClient().use { client ->
            anyCall(client)
            deleting(client)
            failing(client)
            watching(client)
            check(failingOpen(client).first().content.length > "You are patient.".length)
            check(turn(client) { "Hello!" } == "Hello!")
        }
    }
    exitProcess(0)
}

private suspend fun fiveLines() {
    HummockClient().use { client ->
        client.note("loan", "先本后息：先还本金，后还利息", "还款")
        val recalled = client.recall("loan", "增加先本后息的还款方式") { preset = Preset.PRESET_CHAT }
        recalled.hitsList.forEach { println("${it.score} ${it.memory.title}") }
    }
}

private fun overTls(authorities: Path, token: String) {
    val client = HummockClient(
        "memory.example:7420",
        ClientOptions(token = token, rootCertificates = authorities, readDeadline = Duration.ofSeconds(2)),
    )
    client.close()
}

private suspend fun anyCall(client: HummockClient) {
    val session = client.sessions {
        getOrCreateActiveSession(getOrCreateActiveSessionRequest { project = "loan" })
    }.session
    val found = client.context {
        withDeadlineAfter(10, SECONDS).recall(recallRequest { project = "loan"; queryText = "还款" })
    }
    check(session.id.isNotEmpty() && found.hitsCount > 0)
}

private suspend fun deleting(client: HummockClient) {
    val note = memory { content = "for this run alone"; metadata["run"] = "12" }
    client.learn("scratch", listOf(note))
    val removed = client.deleteWhere("scratch") { metadata["run"] = "12" }
    client.deleteProject("scratch")
    check(removed == 1)
}

private suspend fun failing(client: HummockClient) {
    try {
        client.memories { getMemory(getMemoryRequest { project = "loan"; id = "never" }) }
    } catch (failed: HummockException) {
        when (failed.reason) {
            "MEMORY_NOT_FOUND" -> println("not there: ${failed.metadata}")
            "OVERLOADED" -> println("again in ${failed.retryAfter}")
            else -> println("${failed.code}: ${failed.description} ${failed.fieldViolations}")
        }
    }
}

private suspend fun watching(client: HummockClient) {
    val caughtUp = client.watchMemories("loan") { afterSeq = 0 }.first { it.caughtUp }
    check(caughtUp.seq > 0)
}

private suspend fun failingOpen(client: HummockClient): List<LlmMessage> {
    client.warmUp("loan")
    client.note("loan", "The plan is paid on the fifteenth.")
    val messages = listOf(LlmMessage.system("You are patient."), LlmMessage.user("When is the plan paid?"))
    repeat(PATIENCE) {
        val sent = client.withMemory("loan", messages)
        if (sent !== messages) return sent
    }
    error("no prompt had its memory in time")
}

/** So often a busy machine may be too late. */
private const val PATIENCE = 50

suspend fun turn(client: HummockClient, model: suspend (List<LlmMessage>) -> String): String {
    val text = "When is the plan paid?"
    val session = client.sessions {
        getOrCreateActiveSession(getOrCreateActiveSessionRequest { project = "loan" })
    }.session
    val sent = client.sessions {
        appendMessage(
            appendMessageRequest {
                project = "loan"
                sessionId = session.id
                role = PromptRole.PROMPT_ROLE_USER
                content = text
            },
        )
    }
    val rendered = client.context {
        renderTurn(
            renderTurnRequest {
                scope = session.id
                turn = (sent.position + 1) / 2
                render = renderRequest {
                    project = "loan"
                    recall = recallRequest { queryText = text }
                    form = RenderForm.RENDER_FORM_MESSAGES
                    prompt = "You are patient."
                    current = promptMessage { id = sent.id; role = PromptRole.PROMPT_ROLE_USER; content = text }
                    this.session = sessionHistory { sessionId = session.id }
                }
            },
        )
    }.rendering
    val answer = model(rendered.messagesList.map { LlmMessage(it.role.name.substringAfterLast('_').lowercase(), it.content) })
    client.context {
        learnTurn(
            learnTurnRequest {
                project = "loan"
                sessionId = session.id
                user = turnSide { this.text = text; messageId = sent.id }
                assistant = turnSide { this.text = answer }
            },
        )
    }
    return answer
}
