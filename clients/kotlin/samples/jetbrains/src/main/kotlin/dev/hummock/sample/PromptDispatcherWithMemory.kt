package dev.hummock.sample

import com.intellij.openapi.project.Project
import dev.hummock.client.LlmMessage
import dev.hummock.client.MemoryOptions
import dev.hummock.v1.Preset
import dev.hummock.v1.RenderForm
import java.time.Duration

/** A chat of the plugin, in an open project. */
data class Session(val id: String, val project: Project)

/** What the plugin has without memory. */
fun interface PromptDispatcher {
    /** The system prompt of a chat. */
    fun buildSystemPrompt(session: Session): String
}

/** The plugin's system prompt with what the project's memory holds for the user's request. */
class PromptDispatcherWithMemory(
    private val originalDispatcher: PromptDispatcher,
    budget: Duration = Duration.ofMillis(300),
) {
    private val options = MemoryOptions(budget, preset = Preset.PRESET_CODE, form = RenderForm.RENDER_FORM_CONTEXT)

    /**
     * The original prompt, a line of `---`, and what is known; the original prompt alone where nothing is known, and
     * where the service is away or slower than the budget. Suspends: call it outside the event dispatch thread.
     */
    suspend fun buildEnhancedSystemPrompt(session: Session, userRequest: String): String {
        val prompt = LlmMessage.system(originalDispatcher.buildSystemPrompt(session))
        val memory = session.project.getService(ProjectMemory::class.java)
        return memory.enhance(listOf(prompt, LlmMessage.user(userRequest)), options).first().content
    }
}
