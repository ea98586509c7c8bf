package dev.hummock.example

import dev.hummock.client.HummockClient
import dev.hummock.client.LlmMessage
import dev.hummock.client.MemoryOptions
import dev.hummock.v1.Preset
import dev.hummock.v1.RenderForm
import java.time.Duration

/** A chat of the plugin. */
data class Session(val id: String, val projectName: String)

/** What the plugin has without memory. */
fun interface PromptDispatcher {
    /** The system prompt of a chat. */
    fun buildSystemPrompt(session: Session): String
}

/**
 * The plugin's system prompt with what the project's memory holds for the user's request.
 *
 * @param budget After which the prompt goes without memory.
 */
class PromptDispatcherWithMemory(
    private val originalDispatcher: PromptDispatcher,
    private val memory: HummockClient,
    budget: Duration = Duration.ofMillis(300),
) {
    private val options =
        MemoryOptions(budget, preset = Preset.PRESET_CODE, form = RenderForm.RENDER_FORM_CONTEXT)

    /**
     * The original prompt, a line of `---`, and what is known: the project, domains, learning records, code. The original
     * prompt alone where nothing is known, and where the service is away or slow.
     */
    suspend fun buildEnhancedSystemPrompt(session: Session, projectKey: String, userRequest: String): String {
        val prompt = LlmMessage.system(originalDispatcher.buildSystemPrompt(session))
        return memory.withMemory(projectKey, listOf(prompt, LlmMessage.user(userRequest)), options).first().content
    }
}
