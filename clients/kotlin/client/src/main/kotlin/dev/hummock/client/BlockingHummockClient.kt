package dev.hummock.client

import dev.hummock.v1.ContextServiceGrpc
import dev.hummock.v1.DeleteProjectRequest
import dev.hummock.v1.DeleteProjectResponse
import dev.hummock.v1.LearnRequest
import dev.hummock.v1.LearnResponse
import dev.hummock.v1.Memory
import dev.hummock.v1.MemoryFilter
import dev.hummock.v1.ProjectServiceGrpc
import dev.hummock.v1.RecallRequest
import dev.hummock.v1.RecallResponse
import dev.hummock.v1.RenderRequest
import dev.hummock.v1.RenderResponse
import dev.hummock.v1.SearchRequest
import dev.hummock.v1.SearchResponse
import io.grpc.Channel
import io.grpc.MethodDescriptor
import io.grpc.MethodDescriptor.MethodType.UNARY
import io.grpc.stub.AbstractStub
import io.grpc.stub.ClientCalls
import io.grpc.stub.StreamObserver
import java.time.Duration
import java.util.Spliterator.NONNULL
import java.util.Spliterator.ORDERED
import java.util.Spliterators.spliteratorUnknownSize
import java.util.concurrent.CompletableFuture
import java.util.function.Function
import java.util.stream.Stream
import java.util.stream.StreamSupport
import kotlinx.coroutines.runBlocking

/**
 * A connection to the service for Java, and for Kotlin without coroutines; may be used by any number of threads. What
 * fails throws [HummockException], which is unchecked.
 *
 *     try (var client = new BlockingHummockClient()) {
 *         client.note("loan", "先本后息：先还本金，后还利息", "还款");
 *         client.recall("loan", "增加先本后息的还款方式").getHitsList().forEach(hit -> …);
 *     }
 *
 * [send], [sendAsync] and [stream] make any call; [stub] gives the generated stubs.
 *
 * @param target `host:port` or `unix:///path`; null means HUMMOCK_TARGET, and without it 127.0.0.1:7420.
 * @throws IllegalArgumentException A target or a token that is none, or a token that would go to another machine in the
 *     clear.
 */
class BlockingHummockClient @JvmOverloads constructor(
    target: String? = null,
    options: ClientOptions = ClientOptions(),
) : AutoCloseable {
    private val client = HummockClient(target, options)
    private val channel: Channel get() = client.connection.channel

    /** What is called, as `host:port` or `unix:path`. */
    val target: String get() = client.target

    /**
     * A generated stub under this client's rules, for example `client.stub(SessionServiceGrpc::newFutureStub)`. What fails
     * is gRPC's StatusRuntimeException; [HummockException.of] tells what it says.
     */
    fun <S : AbstractStub<S>> stub(make: Function<Channel, S>): S = make.apply(channel)

    /**
     * Stores memories, all or none; they are durable when it returns, and the next recall finds them. With a [requestId] of
     * your own, a UUID, the call can be made again and counts once.
     */
    @JvmOverloads
    fun learn(project: String, memories: Iterable<Memory>, requestId: String = ""): LearnResponse {
        val request = LearnRequest.newBuilder().setProject(project).addAllMemories(memories).setRequestId(requestId)
        return send(ContextServiceGrpc.getLearnMethod(), request.build())
    }

    /** Remembers a sentence. */
    fun note(project: String, text: String, vararg tags: String): LearnResponse = note(project, text, tags.asList(), "")

    /** The same with a [requestId] of your own, as in [learn]. */
    fun note(project: String, text: String, tags: List<String>, requestId: String): LearnResponse =
        learn(project, listOf(Memory.newBuilder().setContent(text).addAllTags(tags).build()), requestId)

    /** Finds what bears on the text; a project that does not exist knows nothing. */
    fun recall(project: String, queryText: String): RecallResponse =
        recall(RecallRequest.newBuilder().setProject(project).setQueryText(queryText).setAllowMissing(true).build())

    /** Finds what is asked for. */
    fun recall(request: RecallRequest): RecallResponse = send(ContextServiceGrpc.getRecallMethod(), request)

    /** Writes a prompt section, and counts nothing. */
    fun render(request: RenderRequest): RenderResponse = send(ContextServiceGrpc.getRenderMethod(), request)

    /** Searches code and knowledge together, as an agent's tool. */
    fun search(request: SearchRequest): SearchResponse = send(ContextServiceGrpc.getSearchMethod(), request)

    /** Removes a project with all that it has; the reply counts it. */
    fun deleteProject(project: String): DeleteProjectResponse =
        send(ProjectServiceGrpc.getDeleteProjectMethod(), DeleteProjectRequest.newBuilder().setProject(project).build())

    /** As [HummockClient.deleteWhere]: removes all memories that pass a filter, and says how many that were. */
    @Throws(InterruptedException::class)
    fun deleteWhere(project: String, where: MemoryFilter): Int = runBlocking { client.deleteWhere(project, where) }

    /** As [HummockClient.withMemory]: the very same messages where the service is away, slow or at fault. */
    @JvmOverloads
    @Throws(InterruptedException::class)
    fun withMemory(
        project: String,
        messages: List<LlmMessage>,
        options: MemoryOptions = MemoryOptions(),
    ): List<LlmMessage> = runBlocking { client.withMemory(project, messages, options) }

    /** As [HummockClient.warmUp]: has the service read the project, in the background. */
    fun warmUp(project: String) = client.warmUp(project)

    /** Any call with one reply, by its method. A thread that is interrupted cancels it. */
    @JvmOverloads
    fun <Q : Any, R : Any> send(method: MethodDescriptor<Q, R>, request: Q, timeout: Duration? = null): R =
        typed { ClientCalls.blockingUnaryCall(channel, method, within(timeout), request) }

    /** The same, later; it fails with [HummockException]. Cancelling the future cancels the call. */
    @JvmOverloads
    fun <Q : Any, R : Any> sendAsync(
        method: MethodDescriptor<Q, R>,
        request: Q,
        timeout: Duration? = null,
    ): CompletableFuture<R> {
        require(method.type == UNARY) { "${method.fullMethodName} is a stream; use stream, or a stub" }
        val call = channel.newCall(method, within(timeout))
        val future = CompletableFuture<R>()
        ClientCalls.asyncUnaryCall(call, request, Completing(future))
        future.whenComplete { _, _ -> if (future.isCancelled) call.cancel("the caller has cancelled it", null) }
        return future
    }

    /** Any call whose replies are a stream, which is to be closed. No deadline unless [timeout] sets one. */
    @JvmOverloads
    fun <Q : Any, R : Any> stream(method: MethodDescriptor<Q, R>, request: Q, timeout: Duration? = null): Stream<R> {
        val call = channel.newCall(method, within(timeout))
        val replies = ClientCalls.blockingServerStreamingCall(call, request)
        val typedReplies = object : Iterator<R> {
            override fun hasNext() = typed { replies.hasNext() }

            override fun next(): R = typed { replies.next() }
        }
        return StreamSupport.stream(spliteratorUnknownSize(typedReplies, ORDERED or NONNULL), false)
            .onClose { call.cancel("the stream was closed", null) }
    }

    /** Ends the connection; calls that run fail. */
    override fun close() = client.close()
}

/** Hands the reply to a future. */
private class Completing<R>(private val future: CompletableFuture<R>) : StreamObserver<R> {
    override fun onNext(reply: R) {
        future.complete(reply)
    }

    override fun onError(thrown: Throwable) {
        future.completeExceptionally(HummockException.of(thrown) ?: thrown)
    }

    override fun onCompleted() = Unit
}
