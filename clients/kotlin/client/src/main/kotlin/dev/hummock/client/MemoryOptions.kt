package dev.hummock.client

import dev.hummock.v1.Preset
import dev.hummock.v1.RenderForm
import java.time.Duration

/**
 * How `withMemory` recalls. Kotlin names the arguments, Java changes one at a time.
 *
 * @property budget After which the messages go without memory.
 * @property preset What the conversation is about; unspecified means what the project sets.
 * @property form How memories are written: MEMORIES for chats, CONTEXT for questions about code.
 * @property budgetTokens Most tokens of the system prompt, 1 to 1000000; null means what the project sets.
 */
class MemoryOptions(
    val budget: Duration = MEMORY_BUDGET,
    val preset: Preset = Preset.PRESET_UNSPECIFIED,
    val form: RenderForm = RenderForm.RENDER_FORM_MEMORIES,
    val budgetTokens: Int? = null,
) {
    /** The same with this budget of time. */
    fun withBudget(budget: Duration) = MemoryOptions(budget, preset, form, budgetTokens)

    /** The same for conversations of this kind. */
    fun withPreset(preset: Preset) = MemoryOptions(budget, preset, form, budgetTokens)

    /** The same in this form. */
    fun withForm(form: RenderForm) = MemoryOptions(budget, preset, form, budgetTokens)

    /** The same within so many tokens. */
    fun withBudgetTokens(tokens: Int) = MemoryOptions(budget, preset, form, tokens)
}
