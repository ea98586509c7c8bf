package dev.hummock.conformance

import com.google.gson.JsonArray
import com.google.gson.JsonElement
import com.google.gson.JsonObject
import com.google.gson.JsonParser
import com.google.protobuf.Message
import com.google.protobuf.util.JsonFormat
import com.google.rpc.BadRequest
import com.google.rpc.ErrorInfo
import com.google.rpc.RetryInfo
import dev.hummock.client.HummockClient
import dev.hummock.v1.AdminServiceGrpc
import dev.hummock.v1.ContextServiceGrpc
import dev.hummock.v1.LearningServiceGrpc
import dev.hummock.v1.MemoryServiceGrpc
import dev.hummock.v1.ProjectServiceGrpc
import dev.hummock.v1.SessionServiceGrpc
import io.grpc.MethodDescriptor
import io.grpc.MethodDescriptor.PrototypeMarshaller
import java.time.Duration
import kotlinx.coroutines.async
import kotlinx.coroutines.coroutineScope
import kotlinx.coroutines.delay
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.asFlow
import kotlinx.coroutines.flow.take

private val DETAILS = JsonFormat.TypeRegistry.newBuilder()
    .add(listOf(ErrorInfo.getDescriptor(), BadRequest.getDescriptor(), RetryInfo.getDescriptor()))
    .build()
private val PRINTER = JsonFormat.printer().usingTypeRegistry(DETAILS)
private val PARSER = JsonFormat.parser().usingTypeRegistry(DETAILS)

private val METHODS: Map<String, MethodDescriptor<*, *>> = listOf(
    ContextServiceGrpc.getServiceDescriptor(),
    MemoryServiceGrpc.getServiceDescriptor(),
    SessionServiceGrpc.getServiceDescriptor(),
    ProjectServiceGrpc.getServiceDescriptor(),
    LearningServiceGrpc.getServiceDescriptor(),
    AdminServiceGrpc.getServiceDescriptor(),
).flatMap { it.methods }.associateBy { it.fullMethodName }

/** The calls of steps, from JSON to JSON, over the client that is tested. */
class Calls(private val client: HummockClient, private val values: Values) {
    /** The reply of a step's call, or its replies as an array. */
    suspend fun made(step: JsonObject): JsonElement {
        @Suppress("UNCHECKED_CAST") // Every method of the contract takes and gives messages.
        val method = METHODS.getValue(step["call"].asString) as MethodDescriptor<Message, Message>
        val timeout = step["deadline_ms"]?.let { Duration.ofMillis(it.asLong) }
        if (step.has("requests") || !method.type.serverSendsOneMessage()) return streamed(method, step, timeout)
        val request = message(method, step["request"] ?: JsonObject())
        val cancelAfterMs = step["cancel_after_ms"] ?: return json(client.send(method, request, timeout))
        return coroutineScope {
            val call = async { client.send(method, request, timeout) }
            delay(cancelAfterMs.asLong)
            call.cancel()
            json(call.await())
        }
    }

    private suspend fun streamed(
        method: MethodDescriptor<Message, Message>,
        step: JsonObject,
        timeout: Duration?,
    ): JsonElement {
        val said = step["requests"]?.asJsonArray ?: listOf(step["request"])
        val requests = said.map { message(method, it) }
        val replies: Flow<Message> =
            if (method.type.clientSendsOneMessage()) client.stream(method, requests.single(), timeout)
            else client.exchange(method, requests.asFlow(), timeout)
        val isCancelled = step["then"]?.asString == "cancel"
        val read = if (isCancelled) replies.take(step.getAsJsonArray("replies").size()) else replies
        return JsonArray().apply {
            read.collect {
                add(json(it))
                // Behind the first, for then the stream has begun.
                if (size() == 1 && step.has("meanwhile")) made(step.getAsJsonObject("meanwhile"))
            }
        }
    }

    private fun message(method: MethodDescriptor<Message, Message>, said: JsonElement): Message {
        val prototype = (method.requestMarshaller as PrototypeMarshaller<Message>).messagePrototype!!
        val builder = prototype.newBuilderForType()
        PARSER.merge(values.filled(said).toString(), builder)
        return builder.build()
    }

    private fun json(reply: Message): JsonElement = JsonParser.parseString(PRINTER.print(reply))
}
