package dev.hummock.example

import dev.hummock.client.HummockClient
import dev.hummock.shaded.com.google.protobuf.ByteString
import dev.hummock.shaded.com.google.protobuf.Duration
import dev.hummock.shaded.com.google.protobuf.Timestamp
import dev.hummock.v1.Memory
import dev.hummock.v1.MemoryFilter
import dev.hummock.v1.MemoryKind
import dev.hummock.v1.Origin
import dev.hummock.v1.codeFragment
import dev.hummock.v1.copy
import dev.hummock.v1.embedding
import dev.hummock.v1.learnRequest
import dev.hummock.v1.learningRecord
import dev.hummock.v1.memory
import dev.hummock.v1.memoryFilter
import dev.hummock.v1.renderResponse
import java.io.File
import java.util.jar.JarFile
import kotlin.test.Test
import kotlin.test.assertEquals
import kotlin.test.assertFalse
import kotlin.test.assertTrue

/** The jar for plugins as Kotlin's compiler meets it: every signature that it is told of is one of the jar's own. */
class PluginJarTest {
    @Test
    fun `one field of each kind is set, read and cleared`() {
        val at = Timestamp.newBuilder().setSeconds(1).build()
        val built = memory {
            id = "m"
            kind = MemoryKind.MEMORY_KIND_NOTE
            trust = 0.5
            tokenCount = 7
            eventTime = at
            vector = embedding { values = ByteString.copyFromUtf8("1234") }
            codeFragment = codeFragment { path = "a.kt" }
        }
        val byHand = Memory.newBuilder().setId("m").setKind(MemoryKind.MEMORY_KIND_NOTE).setTrust(0.5).setTokenCount(7)
            .setEventTime(at)
        byHand.vectorBuilder.values = ByteString.copyFromUtf8("1234")
        byHand.codeFragmentBuilder.path = "a.kt"
        assertEquals(byHand.build(), built)
        val cleared = built.copy {
            assertTrue(hasTrust() && hasEventTime() && hasVector() && hasCodeFragment())
            assertEquals(at, eventTime)
            clearTrust()
            clearEventTime()
            clearVector()
            clearDetail()
        }
        assertFalse(cleared.hasTrust() || cleared.hasEventTime() || cleared.hasVector() || cleared.hasCodeFragment())
        val took = Duration.newBuilder().setSeconds(2).build()
        assertEquals(took, renderResponse { renderElapsed = took }.renderElapsed)
    }

    @Test
    fun `of a oneof the last one stays`() {
        val built = memory {
            codeFragment = codeFragment { path = "a.kt" }
            learningRecord = learningRecord { question = "why" }
            assertEquals(Memory.DetailCase.LEARNING_RECORD, detailCase)
        }
        assertFalse(built.hasCodeFragment())
        assertEquals("why", built.learningRecord.question)
    }

    @Test
    fun `lists of strings, enums and messages are added to, changed and cleared`() {
        val filter = memoryFilter {
            tags.add("a")
            tags += "b"
            tags += listOf("c", "d")
            tags.addAll(listOf("e"))
            tags[0] = "z"
            origins += Origin.ORIGIN_MANUAL
            origins += listOf(Origin.ORIGIN_SUMMARY)
            kinds.add(MemoryKind.MEMORY_KIND_NOTE)
            kinds.clear()
            assertEquals(5, tags.size)
        }
        assertEquals(listOf("z", "b", "c", "d", "e"), filter.tagsList)
        assertEquals(listOf(Origin.ORIGIN_MANUAL, Origin.ORIGIN_SUMMARY), filter.originsList)
        assertEquals(0, filter.kindsCount)
        val request = learnRequest {
            memories += memory { id = "a" }
            memories.add(memory { id = "b" })
            memories[1] = memory { id = "c" }
        }
        assertEquals(listOf("a", "c"), request.memoriesList.map { it.id })
    }

    @Test
    fun `maps are put into, read, removed from and cleared`() {
        val built = memory {
            metadata["a"] = "1"
            metadata.put("b", "2")
            metadata.putAll(mapOf("c" to "3", "d" to "4"))
            metadata.remove("c")
            assertEquals("2", metadata["b"])
        }
        assertEquals(mapOf("a" to "1", "b" to "2", "d" to "4"), built.metadataMap)
        assertEquals(Memory.newBuilder().setId("e").build(), built.copy { id = "e"; metadata.clear() })
        assertEquals("12", MemoryFilter.newBuilder(memoryFilter { metadata["run"] = "12" }).getMetadataOrThrow("run"))
    }

    @Test
    fun `Kotlin's compiler is told of no class that is not there`() {
        val told = classes().flatMap { type -> signatures(type).map { type.name to it } }
        assertTrue(told.any { (name, signature) -> name == "dev.hummock.v1.MemoryKt\$Dsl" && "DslMap" in signature })
        assertTrue(told.any { (name, signature) -> name == HummockClient::class.java.name && "MethodDescriptor" in signature })
        assertEquals(emptyList(), told.filterNot { (_, signature) -> namesIn(signature).all(::isThere) })
    }
}

/** Of the contract and the client, with what Kotlin's compiler is told of them. */
private fun classes(): List<Class<*>> {
    val jar = File(HummockClient::class.java.protectionDomain.codeSource.location.toURI())
    val names = JarFile(jar).use { open -> open.entries().toList().map { it.name } }
    return names.filter { it.endsWith(".class") && (it.startsWith("dev/hummock/v1/") || it.startsWith("dev/hummock/client/")) }
        .map { load(it.removeSuffix(".class").replace('/', '.')) }
        .filter { it.isAnnotationPresent(Metadata::class.java) }
}

/** Of functions: `(Ldev/hummock/v1/Memory;I)V`. */
private fun signatures(type: Class<*>): List<String> =
    type.getAnnotation(Metadata::class.java).data2.filter { SIGNATURE.matches(it) }

private fun namesIn(signature: String): Sequence<String> =
    NAME.findAll(signature).map { it.groupValues[1].replace('/', '.') }

private fun isThere(name: String): Boolean = runCatching { load(name) }.isSuccess

private fun load(name: String): Class<*> = Class.forName(name, false, HummockClient::class.java.classLoader)

private val SIGNATURE = Regex("""\(.*\)\S+""")
private val NAME = Regex("""L([^;]+);""")
