package dev.hummock.client

import dev.hummock.v1.PromptTarget.PROMPT_TARGET_SYSTEM
import dev.hummock.v1.RenderRequest
import dev.hummock.v1.RenderResponse
import dev.hummock.v1.recallRequest
import dev.hummock.v1.renderRequest
import java.time.Duration
import java.util.logging.Level
import java.util.logging.Logger

/** One message, as the APIs of language models have it. [role] is `system`, `user`, `assistant` or another that is left alone. */
data class LlmMessage(val role: String, val content: String) {
    companion object {
        /** What the application says. */
        @JvmStatic
        fun system(content: String) = LlmMessage(SYSTEM, content)

        /** What the user says. */
        @JvmStatic
        fun user(content: String) = LlmMessage(USER, content)

        /** What the model has said. */
        @JvmStatic
        fun assistant(content: String) = LlmMessage("assistant", content)

        internal const val SYSTEM = "system"
        internal const val USER = "user"
    }
}

/** How long a prompt waits for its memory unless its caller says otherwise. */
internal val MEMORY_BUDGET: Duration = Duration.ofMillis(300)

/** How long [warmingRequest] may take: the service may just be starting. */
internal val WARMING: Duration = Duration.ofSeconds(30)

/** Characters of a query; of a longer message the end is asked for, where the question stands most often. */
private const val LONGEST_QUERY = 8192

private val LOG: Logger = Logger.getLogger("dev.hummock.client")

/** Asks for the system prompt of these messages with what the user's last one recalls; null where there is none. */
internal fun promptRequest(project: String, messages: List<LlmMessage>, options: MemoryOptions): RenderRequest? {
    val said = messages.lastOrNull { it.role == LlmMessage.USER }?.content?.trim().orEmpty()
    if (said.isEmpty()) return null
    return asked(project, said.end(LONGEST_QUERY), options).toBuilder()
        .setPrompt(messages.firstOrNull { it.role == LlmMessage.SYSTEM }?.content.orEmpty())
        .build()
}

/** A request that has the service read the project. */
internal fun warmingRequest(project: String): RenderRequest = asked(project, "?", MemoryOptions())

/**
 * The messages with the finished system prompt; these very ones where there is nothing to say, and where an earlier service
 * did not finish it: the section alone would take the place of what stands there.
 */
internal fun withSection(messages: List<LlmMessage>, reply: RenderResponse): List<LlmMessage> {
    if (reply.text.isEmpty()) return messages
    val prompt = LlmMessage.system(reply.messagesList.firstOrNull()?.content ?: return messages)
    val at = messages.indexOfFirst { it.role == LlmMessage.SYSTEM }
    return if (at < 0) listOf(prompt) + messages else messages.toMutableList().apply { set(at, prompt) }
}

/** Says why a prompt goes without memory. */
internal fun wentWithout(why: Throwable?) {
    LOG.log(Level.FINE, "a prompt goes without memory", why)
}

private fun asked(project: String, query: String, options: MemoryOptions) = renderRequest {
    this.project = project
    recall = recallRequest {
        queryText = query
        preset = options.preset
    }
    form = options.form
    options.budgetTokens?.let { budgetTokens = it }
    target = PROMPT_TARGET_SYSTEM
    allowMissing = true
}

/** The last [most] characters, with no half of one. */
private fun String.end(most: Int): String =
    takeLast(most).let { if (it.firstOrNull()?.isLowSurrogate() == true) it.drop(1) else it }
