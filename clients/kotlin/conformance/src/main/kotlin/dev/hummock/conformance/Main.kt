package dev.hummock.conformance

import com.google.gson.JsonArray
import com.google.gson.JsonElement
import com.google.gson.JsonObject
import com.google.gson.JsonParser
import com.google.gson.JsonPrimitive
import com.google.protobuf.util.JsonFormat
import dev.hummock.client.ClientOptions
import dev.hummock.client.HummockClient
import dev.hummock.client.HummockException
import dev.hummock.client.LlmMessage
import dev.hummock.client.MemoryOptions
import dev.hummock.v1.MemoryFilter
import java.io.FileDescriptor
import java.io.FileOutputStream
import java.io.PrintStream
import java.nio.file.Path
import java.time.Duration
import java.util.UUID
import kotlin.io.path.listDirectoryEntries
import kotlin.io.path.readText
import kotlin.system.exitProcess
import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.runBlocking

/** A step did not go as expected; the message says why. */
private class Failed(why: String) : Exception(why)

/** Runs all cases of the file that HUMMOCK_CONFORMANCE names, and writes a line of JSON each. */
fun main() {
    val told = parsed(Path.of(System.getenv("HUMMOCK_CONFORMANCE"))).asJsonObject
    val folder = Path.of(told["cases"].asString)
    val runner = Runner(told, Matching(folder.resolveSibling("golden")))
    // The environment's encoding is not to change what is said.
    val out = PrintStream(FileOutputStream(FileDescriptor.out), true, Charsets.UTF_8)
    for (file in folder.listDirectoryEntries("*.json").sorted()) {
        for (case in parsed(file).asJsonArray) out.println(runner.line(case.asJsonObject))
    }
    exitProcess(0)
}

private fun parsed(file: Path): JsonElement = JsonParser.parseString(file.readText())

private class Runner(private val told: JsonObject, private val matching: Matching) {
    /** What is said of a case. */
    fun line(case: JsonObject): JsonObject {
        val detail = detail(case)
        return JsonObject().apply {
            add("case", case["name"])
            addProperty("ok", detail.isEmpty())
            addProperty("detail", detail)
        }
    }

    private fun detail(case: JsonObject): String {
        val values = Values("conformance-${UUID.randomUUID()}")
        client(case).use { client ->
            case.getAsJsonArray("steps").forEachIndexed { at, step ->
                try {
                    runBlocking { runInTime(client, step.asJsonObject, values) }
                } catch (failed: Failed) {
                    return "step ${at + 1}: ${failed.message}"
                } catch (broken: Exception) {
                    // A runner that ends would say nothing of the cases behind.
                    return "step ${at + 1}: $broken"
                }
            }
        }
        return ""
    }

    private fun client(case: JsonObject): HummockClient {
        val asked = case["client"]?.asJsonObject ?: JsonObject()
        val token = asked["token"]?.asString?.let { if (it == "good") told["token"].asString else it }
        val deadline = asked["deadline_ms"]?.let { Duration.ofMillis(it.asLong) }
        val authorities = Path.of(told["ca"].asString).takeIf { asked["tls"]?.asBoolean == true }
        val plain = ClientOptions(token = token, rootCertificates = authorities)
        val server = case["server"]?.asString ?: "main"
        return HummockClient(
            told.getAsJsonObject("targets")[server].asString,
            if (deadline == null) plain else plain.withDeadlines(deadline, deadline),
        )
    }

    private suspend fun runInTime(client: HummockClient, step: JsonObject, values: Values) {
        val started = System.nanoTime()
        when {
            step.has("with_memory") -> withMemory(client, values.filled(step).asJsonObject)
            step.has("delete_where") -> deleteWhere(client, values.filled(step).asJsonObject)
            else -> call(client, step, values)
        }
        val tookMs = (System.nanoTime() - started) / 1_000_000
        val mostMs = step["within_ms"]?.asLong ?: Long.MAX_VALUE
        if (tookMs > mostMs) throw Failed("took $tookMs ms; at most $mostMs were expected")
    }

    private suspend fun call(client: HummockClient, step: JsonObject, values: Values) {
        val calls = Calls(client, values)
        val error = step["error"]?.asJsonObject
        if (error != null) return fails(error) { calls.made(step) }
        val got = calls.made(step)
        expect(values.filled(step["replies"] ?: step["reply"] ?: JsonObject()), got)
        step["save"]?.let { values.save(it.asJsonObject, got) }
    }

    private suspend fun fails(expected: JsonObject, ask: suspend () -> JsonElement) {
        val got = try {
            ask()
        } catch (error: HummockException) {
            return expect(expected, told(error))
        } catch (cancelled: CancellationException) {
            return expect(expected, JsonObject().apply { addProperty("code", "CANCELLED") })
        }
        throw Failed("it went well, and should have failed with $expected: $got")
    }

    private fun told(error: HummockException) = JsonObject().apply {
        addProperty("code", error.code.name)
        addProperty("reason", error.reason)
        addProperty("message", error.description)
        add("fields", JsonArray().apply { error.fieldViolations.forEach { add(it.field) } })
        add("metadata", JsonObject().apply { error.metadata.forEach { (key, value) -> addProperty(key, value) } })
        add("retry_after", JsonPrimitive(error.retryAfter != null))
    }

    private suspend fun withMemory(client: HummockClient, step: JsonObject) {
        val asked = step.getAsJsonObject("with_memory")
        val messages = asked.getAsJsonArray("messages").map { it.asJsonObject }.map {
            LlmMessage(it["role"].asString, it["content"].asString)
        }
        val options = MemoryOptions(Duration.ofMillis(asked["budget_ms"].asLong))
        val got = client.withMemory(asked["project"].asString, messages, options)
        if (step["unchanged"]?.asBoolean == true && got !== messages) throw Failed("other messages came back: $got")
        step["messages"]?.let { expect(it, json(got)) }
    }

    private suspend fun deleteWhere(client: HummockClient, step: JsonObject) {
        val asked = step.getAsJsonObject("delete_where")
        val where = MemoryFilter.newBuilder().also { JsonFormat.parser().merge(asked["filter"].toString(), it) }.build()
        expect(step["removed"], JsonPrimitive(client.deleteWhere(asked["project"].asString, where)))
    }

    private fun json(messages: List<LlmMessage>) = JsonArray().apply {
        for (message in messages) {
            add(
                JsonObject().apply {
                    addProperty("role", message.role)
                    addProperty("content", message.content)
                },
            )
        }
    }

    private fun expect(expected: JsonElement, got: JsonElement) {
        matching.mismatch(expected, got)?.let { throw Failed(it) }
    }
}
