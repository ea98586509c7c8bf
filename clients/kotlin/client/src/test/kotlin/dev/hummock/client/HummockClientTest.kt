package dev.hummock.client

import dev.hummock.v1.Preset
import dev.hummock.v1.RenderForm
import dev.hummock.v1.learnRequest
import io.grpc.Metadata
import io.grpc.Status
import java.net.ServerSocket
import java.time.Duration
import java.util.UUID
import java.util.concurrent.TimeUnit.SECONDS
import kotlin.system.measureTimeMillis
import kotlin.test.AfterTest
import kotlin.test.Test
import kotlin.test.assertContains
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import kotlin.test.assertNotEquals
import kotlin.test.assertNull
import kotlin.test.assertSame
import kotlin.test.assertTrue
import kotlinx.coroutines.runBlocking
import org.junit.jupiter.api.Timeout

@Timeout(60)
class HummockClientTest {
    private val service = Service()
    private val client = HummockClient(service.target, ClientOptions(token = "s3cret"))
    private val said = listOf(LlmMessage.system("be kind"), LlmMessage.user("first"), LlmMessage.user("when?"))

    @AfterTest
    fun close() {
        client.close()
        service.close()
    }

    @Test
    fun `a write that failed on the way is repeated under one request_id of the client's making`() = runBlocking {
        assertEquals(7, client.note("p", "a sentence", "tag").seq)
        val (first, second, third) = service.learnt
        assertEquals(listOf(first, first), listOf(second, third))
        UUID.fromString(first.requestId)
        client.note("p", "a sentence", "tag")
        assertNotEquals(first.requestId, service.learnt.last().requestId)
    }

    @Test
    fun `a caller's own request_id stays`() = runBlocking {
        client.context { learn(learnRequest { project = "p"; requestId = "mine" }) }
        client.note("p", "a sentence", "tag", requestId = "mine")
        BlockingHummockClient(service.target).use { it.note("p", "a sentence", listOf("tag"), "mine") }
        assertEquals(setOf("mine"), service.learnt.map { it.requestId }.toSet())
    }

    @Test
    fun `calls carry the token and a deadline by their kind, unless they bring one`() = runBlocking {
        client.recall("p", "q")
        client.note("p", "n")
        client.context { withDeadlineAfter(2, SECONDS).recall(dev.hummock.v1.RecallRequest.getDefaultInstance()) }
        val authorization = Metadata.Key.of("authorization", Metadata.ASCII_STRING_MARSHALLER)
        assertEquals(setOf("Bearer s3cret"), service.headers.map { it.get(authorization) }.toSet())
        val left = service.left.map { it!! }
        assertTrue(left.first() in 1..5_000 && left[1] in 5_001..30_000 && left.last() in 1..2_000, left.toString())
    }

    @Test
    fun `what fails tells all that the service says`() = runBlocking {
        val failed = assertFailsWith<HummockException> { client.recall("p", "wrong") }
        assertEquals(Status.Code.INVALID_ARGUMENT, failed.code)
        assertEquals("INVALID_REQUEST", failed.reason)
        assertEquals("it is wrong", failed.description)
        assertEquals(listOf(FieldViolation("query_text", "must be right")), failed.fieldViolations)
        assertEquals(mapOf("limit" to "3"), failed.metadata)
        assertEquals(Duration.ofMillis(250), failed.retryAfter)
    }

    @Test
    fun `what the service says nothing of has the code's name as its reason`() = runBlocking {
        val failed = assertFailsWith<HummockException> { client.render("broken") {} }
        assertEquals("INTERNAL", failed.reason)
        assertNull(failed.retryAfter)
    }

    @Test
    fun `memory goes into the first system message, and the user's last one is asked for`() = runBlocking {
        val messages = client.withMemory("p", said, MemoryOptions(Duration.ofSeconds(20), preset = Preset.PRESET_CHAT))
        assertEquals(listOf(LlmMessage.system("be kind + a memory")) + said.drop(1), messages)
        val request = service.rendered.single()
        assertEquals("when?", request.recall.queryText)
        assertEquals(RenderForm.RENDER_FORM_MEMORIES, request.form)
        assertTrue(request.allowMissing)
    }

    @Test
    fun `without a system message there is a new one in front`() = runBlocking {
        val messages = client.withMemory("p", said.drop(1), patient)
        assertEquals(listOf(LlmMessage.system("a memory")) + said.drop(1), messages)
    }

    @Test
    fun `a long message is asked for by its end, with no half of a character`() = runBlocking {
        client.withMemory("p", listOf(LlmMessage.user("😀".repeat(5_000) + "?")), patient)
        val query = service.rendered.single().recall.queryText
        assertEquals("😀".repeat(4_095) + "?", query)
    }

    @Test
    fun `the very same messages come back where there is nothing to say or something is wrong`() = runBlocking {
        for (project in listOf("empty", "broken", "earlier")) assertSame(said, client.withMemory(project, said, patient))
        val unasked = listOf(LlmMessage.system("be kind"))
        assertSame(unasked, client.withMemory("p", unasked, patient))
    }

    @Test
    fun `a service that does not answer costs the budget and no more`() = runBlocking {
        val tookMs = measureTimeMillis { assertSame(said, client.withMemory("slow", said)) }
        assertTrue(tookMs in 290..5_000, "took $tookMs ms")
    }

    @Test
    fun `a service that is not there changes nothing`() = runBlocking {
        HummockClient("127.0.0.1:${ServerSocket(0).use { it.localPort }}").use {
            assertSame(said, it.withMemory("p", said))
        }
    }

    @Test
    fun `what kept a call from a service is said`() = runBlocking {
        HummockClient("127.0.0.1:${ServerSocket(0).use { it.localPort }}").use {
            val failed = assertFailsWith<HummockException> { it.recall("p", "when?") }
            assertEquals(Status.Code.UNAVAILABLE, failed.code)
            val said = "the service cannot be reached: is `hummock serve` running? target ${it.target} (ConnectException: "
            assertContains(failed.description, said + "Connection refused")
        }
    }

    @Test
    fun `a service that comes back is found at the next call`() = runBlocking {
        val port = ServerSocket(0).use { it.localPort }
        HummockClient("127.0.0.1:$port").use { early ->
            repeat(2) {
                val failed = assertFailsWith<HummockException> { early.recall("p", "q") }
                assertEquals(Status.Code.UNAVAILABLE, failed.code)
            }
            Service(port).use { assertEquals(3, early.recall("p", "q").seq) }
        }
    }

    @Test
    fun `a client that is closed changes nothing`() = runBlocking {
        client.close()
        assertSame(said, client.withMemory("p", said, patient))
    }

    private companion object {
        /** So much that a slow machine passes too. */
        val patient = MemoryOptions(Duration.ofSeconds(20))
    }
}
