package dev.hummock.client

import io.grpc.kotlin.AbstractCoroutineStub
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.catch

/**
 * The calls of one service. What fails throws [HummockException].
 *
 *     val session = client.sessions { getSession(getSessionRequest { project = "loan"; id = "s" }) }.session
 *     client.memories.flow { watchMemories(watchMemoriesRequest { project = "loan" }) }.collect { … }
 *
 * A call's own deadline: `client.sessions { withDeadlineAfter(2, SECONDS).getSession(…) }`.
 *
 * @property stub The generated stub; by itself it throws gRPC's StatusException.
 */
class ServiceCalls<S : AbstractCoroutineStub<S>> internal constructor(val stub: S) {
    /** What a call gives. */
    suspend operator fun <R> invoke(call: suspend S.() -> R): R = typed { stub.call() }

    /** What a stream gives; it begins when it is collected, and ends when the collector is cancelled. */
    fun <R> flow(call: S.() -> Flow<R>): Flow<R> = stub.call().typedFlow()
}

/** The same flow; what gRPC throws becomes a [HummockException]. */
internal fun <R> Flow<R>.typedFlow(): Flow<R> = catch { throw HummockException.of(it) ?: it }
