package dev.hummock.sample

import com.intellij.openapi.Disposable
import com.intellij.openapi.project.Project
import com.intellij.openapi.vfs.VirtualFile
import dev.hummock.client.HummockClient
import dev.hummock.client.LlmMessage
import dev.hummock.client.MemoryOptions
import dev.hummock.v1.MemoryKind
import dev.hummock.v1.domainKnowledge
import dev.hummock.v1.memory

/**
 * The memory of an open project: one connection, made with the project's first prompt and closed with the project.
 *
 * The IDE makes it, for plugin.xml registers it; `project.getService(ProjectMemory::class.java)` gives it.
 */
class ProjectMemory(private val project: Project) : Disposable {
    private val client = HummockClient()

    /** The folder's name, as `hummock index`, MCP servers and hooks have it, where the folder is the repository. */
    val key: String
        get() = project.basePath?.trimEnd('/')?.substringAfterLast('/')?.ifEmpty { null } ?: project.name

    init {
        client.warmUp(key)
    }

    /** The messages with what bears on the last one of the user; the very same ones where nothing does. Never throws. */
    suspend fun enhance(messages: List<LlmMessage>, options: MemoryOptions): List<LlmMessage> =
        client.withMemory(key, messages, options)

    /** Stores what a user says of a file, so that it comes back with questions about either. Throws HummockException. */
    suspend fun remember(title: String, text: String, file: VirtualFile) {
        val said = memory {
            kind = MemoryKind.MEMORY_KIND_DOMAIN_KNOWLEDGE
            domainKnowledge = domainKnowledge {
                domain = title
                summary = text
                keyFiles += file.name
            }
        }
        client.learn(key, listOf(said))
    }

    override fun dispose() = client.close()
}
