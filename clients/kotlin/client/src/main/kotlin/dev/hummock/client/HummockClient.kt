package dev.hummock.client

import dev.hummock.v1.AdminServiceGrpcKt.AdminServiceCoroutineStub
import dev.hummock.v1.ContextServiceGrpc
import dev.hummock.v1.ContextServiceGrpcKt.ContextServiceCoroutineStub
import dev.hummock.v1.DeleteProjectResponse
import dev.hummock.v1.LearnResponse
import dev.hummock.v1.LearningServiceGrpcKt.LearningServiceCoroutineStub
import dev.hummock.v1.Memory
import dev.hummock.v1.MemoryFilter
import dev.hummock.v1.MemoryFilterKt
import dev.hummock.v1.MemoryServiceGrpcKt.MemoryServiceCoroutineStub
import dev.hummock.v1.ProjectServiceGrpcKt.ProjectServiceCoroutineStub
import dev.hummock.v1.RecallRequestKt
import dev.hummock.v1.RecallResponse
import dev.hummock.v1.RenderRequest
import dev.hummock.v1.RenderRequestKt
import dev.hummock.v1.RenderResponse
import dev.hummock.v1.SearchRequestKt
import dev.hummock.v1.SearchResponse
import dev.hummock.v1.SessionServiceGrpcKt.SessionServiceCoroutineStub
import dev.hummock.v1.WatchMemoriesRequestKt
import dev.hummock.v1.WatchMemoriesResponse
import dev.hummock.v1.deleteMemoriesRequest
import dev.hummock.v1.deleteProjectRequest
import dev.hummock.v1.learnRequest
import dev.hummock.v1.memory
import dev.hummock.v1.memoryFilter
import dev.hummock.v1.recallRequest
import dev.hummock.v1.renderRequest
import dev.hummock.v1.searchRequest
import dev.hummock.v1.watchMemoriesRequest
import io.grpc.CallOptions
import io.grpc.MethodDescriptor
import io.grpc.kotlin.ClientCalls
import java.time.Duration
import java.util.concurrent.TimeUnit.NANOSECONDS
import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.SupervisorJob
import kotlinx.coroutines.async
import kotlinx.coroutines.cancel
import kotlinx.coroutines.currentCoroutineContext
import kotlinx.coroutines.ensureActive
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.launch
import kotlinx.coroutines.withTimeoutOrNull

/**
 * A connection to the service, for coroutines; may be used by any number of them. What fails throws [HummockException].
 *
 *     HummockClient().use { client ->
 *         client.note("loan", "先本后息：先还本金，后还利息", "还款")
 *         client.recall("loan", "增加先本后息的还款方式").hitsList.forEach { println("${it.score} ${it.memory.title}") }
 *     }
 *
 * The calls that are made most often are methods; all of them are in [context], [memories], [sessions], [projects],
 * [learning] and [admin], under the same deadlines, retries and token. Reads are repeated while the service is away; so
 * are writes, for each has a request_id: the client gives those one that have none.
 *
 * @param target `host:port` or `unix:///path`; null means HUMMOCK_TARGET, and without it 127.0.0.1:7420.
 * @throws IllegalArgumentException A target or a token that is none, or a token that would go to another machine in the
 *     clear.
 */
class HummockClient @JvmOverloads constructor(
    target: String? = null,
    options: ClientOptions = ClientOptions(),
) : AutoCloseable {
    internal val connection = Connection(target, options)
    private val background = CoroutineScope(SupervisorJob() + Dispatchers.IO)

    /** What is called, as `host:port` or `unix:path`. */
    val target: String get() = connection.target.toString()

    /** Recalls, renders, learns, searches. */
    val context = ServiceCalls(ContextServiceCoroutineStub(connection.channel))

    /** Reads and changes memories by id, lists and watches them. */
    val memories = ServiceCalls(MemoryServiceCoroutineStub(connection.channel))

    /** Conversations and their messages. */
    val sessions = ServiceCalls(SessionServiceCoroutineStub(connection.channel))

    /** Projects, their settings, export and import. */
    val projects = ServiceCalls(ProjectServiceCoroutineStub(connection.channel))

    /** How projects learn, and what they have learnt. */
    val learning = ServiceCalls(LearningServiceCoroutineStub(connection.channel))

    /** The service itself. */
    val admin = ServiceCalls(AdminServiceCoroutineStub(connection.channel))

    /**
     * Stores memories, all or none; they are durable when it returns, and the next recall finds them. With a [requestId] of
     * your own, a UUID, the call can be made again and counts once.
     */
    suspend fun learn(project: String, memories: Iterable<Memory>, requestId: String = ""): LearnResponse = context {
        learn(
            learnRequest {
                this.project = project
                this.memories += memories
                this.requestId = requestId
            },
        )
    }

    /** Remembers a sentence; [requestId] as in [learn]. */
    suspend fun note(project: String, text: String, vararg tags: String, requestId: String = ""): LearnResponse {
        val note = memory {
            content = text
            this.tags += tags.asIterable()
        }
        return learn(project, listOf(note), requestId)
    }

    /** Finds what bears on the text; a project that does not exist knows nothing. [more] sets other fields. */
    suspend fun recall(
        project: String,
        queryText: String,
        more: RecallRequestKt.Dsl.() -> Unit = {},
    ): RecallResponse = context {
        recall(
            recallRequest {
                this.project = project
                this.queryText = queryText
                allowMissing = true
                more()
            },
        )
    }

    /** Writes a prompt section; [more] says from what and how. Nothing is counted: see `context { renderTurn(…) }`. */
    suspend fun render(project: String, more: RenderRequestKt.Dsl.() -> Unit): RenderResponse = context {
        render(
            renderRequest {
                this.project = project
                allowMissing = true
                more()
            },
        )
    }

    /** Searches code and knowledge together, as an agent's tool. [more] sets other fields. */
    suspend fun search(
        project: String,
        queryText: String,
        more: SearchRequestKt.Dsl.() -> Unit = {},
    ): SearchResponse = context {
        search(
            searchRequest {
                this.project = project
                this.queryText = queryText
                allowMissing = true
                more()
            },
        )
    }

    /** What becomes of a project's memories, until the collector is cancelled; [more] says what to begin behind. */
    fun watchMemories(
        project: String,
        more: WatchMemoriesRequestKt.Dsl.() -> Unit = {},
    ): Flow<WatchMemoriesResponse> = memories.flow {
        watchMemories(
            watchMemoriesRequest {
                this.project = project
                allowMissing = true
                more()
            },
        )
    }

    /** Removes a project with all that it has; the reply counts it. */
    suspend fun deleteProject(project: String): DeleteProjectResponse = projects {
        deleteProject(deleteProjectRequest { this.project = project })
    }

    /**
     * Removes all memories that pass a filter, which has one condition at least, and says how many that were. One call
     * removes a few hundred, so there may be several; where one throws, do it again.
     */
    suspend fun deleteWhere(project: String, where: MemoryFilterKt.Dsl.() -> Unit): Int =
        deleteWhere(project, memoryFilter(where))

    /** The same by a filter that is there already. */
    suspend fun deleteWhere(project: String, where: MemoryFilter): Int {
        val request = deleteMemoriesRequest {
            this.project = project
            filter = where
        }
        var removed = 0
        do {
            val reply = memories { deleteMemories(request) }
            removed += reply.deletedCount
        } while (reply.remainingCount > 0)
        return removed
    }

    /**
     * The messages with what the service remembers for the last one of the user, in the first system message or in a new
     * one before all others.
     *
     * The very same messages where nothing was recalled, and where the service is away, slow or at fault: this never
     * throws, and returns within the budget.
     */
    suspend fun withMemory(
        project: String,
        messages: List<LlmMessage>,
        options: MemoryOptions = MemoryOptions(),
    ): List<LlmMessage> {
        val request = promptRequest(project, messages, options) ?: return messages
        // Not in the caller's coroutine: what runs there, such as loading classes, no timeout interrupts.
        val asked = background.async { rendered(request, options.budget) }
        try {
            val reply = withTimeoutOrNull(options.budget.toMillis()) { asked.await() } ?: return messages
            return withSection(messages, reply)
        } catch (_: CancellationException) {
            // The caller's own cancellation goes on; else the client was closed meanwhile.
            currentCoroutineContext().ensureActive()
            return messages
        } finally {
            asked.cancel()
        }
    }

    /** Has the service read the project, in the background, so that [withMemory] is soon in time. */
    fun warmUp(project: String) {
        background.launch { rendered(warmingRequest(project), WARMING, waitForReady = true) }
    }

    /** Any call with one reply, by its method (`ContextServiceGrpc.getRecallMethod()`). */
    suspend fun <Q : Any, R : Any> send(
        method: MethodDescriptor<Q, R>,
        request: Q,
        timeout: Duration? = null,
    ): R = typed { ClientCalls.unaryRpc(connection.channel, method, request, within(timeout)) }

    /** Any call whose replies are a stream; it begins when it is collected. No deadline unless [timeout] sets one. */
    fun <Q : Any, R : Any> stream(
        method: MethodDescriptor<Q, R>,
        request: Q,
        timeout: Duration? = null,
    ): Flow<R> = ClientCalls.serverStreamingRpc(connection.channel, method, request, within(timeout)).typedFlow()

    /** Any call with a stream of requests and one of replies. No deadline unless [timeout] sets one. */
    fun <Q : Any, R : Any> exchange(
        method: MethodDescriptor<Q, R>,
        requests: Flow<Q>,
        timeout: Duration? = null,
    ): Flow<R> = ClientCalls.bidiStreamingRpc(connection.channel, method, requests, within(timeout)).typedFlow()

    /** Ends the connection; calls that run fail. */
    override fun close() {
        background.cancel()
        connection.close()
    }

    private suspend fun rendered(
        request: RenderRequest,
        timeout: Duration,
        waitForReady: Boolean = false,
    ): RenderResponse? = try {
        val options = within(timeout).let { if (waitForReady) it.withWaitForReady() else it }
        ClientCalls.unaryRpc(connection.channel, ContextServiceGrpc.getRenderMethod(), request, options)
    } catch (cancelled: CancellationException) {
        throw cancelled
    } catch (failed: Exception) {
        wentWithout(failed)
        null
    }
}

/** Options of a call that is given up after this long; null means what the client's rules say. */
internal fun within(timeout: Duration?): CallOptions =
    if (timeout == null) CallOptions.DEFAULT else CallOptions.DEFAULT.withDeadlineAfter(timeout.toNanos(), NANOSECONDS)
