package dev.hummock.client

import io.grpc.CallOptions
import io.grpc.Channel
import io.grpc.ClientCall
import io.grpc.ClientInterceptor
import io.grpc.ForwardingClientCall.SimpleForwardingClientCall
import io.grpc.ForwardingClientCallListener.SimpleForwardingClientCallListener
import io.grpc.Metadata
import io.grpc.MethodDescriptor
import io.grpc.Status
import io.grpc.protobuf.StatusProto
import java.time.Duration
import java.util.concurrent.TimeUnit.NANOSECONDS

private val AUTHORIZATION = Metadata.Key.of("authorization", Metadata.ASCII_STRING_MARSHALLER)

/** So many causes are looked through for the first. */
private const val DEEPEST = 8

/**
 * Gives every call of any stub what the client promises: a deadline, the token, writes a request_id, and failures that no
 * service told of a message with the [target].
 */
internal class CallRules(
    private val target: Target,
    private val readDeadline: Duration,
    private val writeDeadline: Duration,
    private val token: String,
) : ClientInterceptor {
    override fun <Q, R> interceptCall(
        method: MethodDescriptor<Q, R>,
        options: CallOptions,
        next: Channel,
    ): ClientCall<Q, R> {
        val isUnary = method.type == MethodDescriptor.MethodType.UNARY
        val call = next.newCall(method, if (isUnary) timed(method, options) else options)
        return object : SimpleForwardingClientCall<Q, R>(call) {
            override fun start(listener: Listener<R>, headers: Metadata) {
                if (token.isNotEmpty()) headers.put(AUTHORIZATION, "Bearer $token")
                super.start(Telling(listener), headers)
            }

            override fun sendMessage(message: Q) {
                super.sendMessage(if (isUnary && !method.isSafe) Contract.withRequestId(message) else message)
            }
        }
    }

    private fun timed(method: MethodDescriptor<*, *>, options: CallOptions): CallOptions {
        if (options.deadline != null) return options
        val after = if (method.isSafe) readDeadline else writeDeadline
        return options.withDeadlineAfter(after.toNanos(), NANOSECONDS)
    }

    private inner class Telling<R>(listener: ClientCall.Listener<R>) : SimpleForwardingClientCallListener<R>(listener) {
        override fun onClose(status: Status, trailers: Metadata) = super.onClose(told(status, trailers), trailers)
    }

    /** The status; of a call that no service answered with the message that the clients of all languages give alike. */
    private fun told(status: Status, trailers: Metadata): Status {
        if (StatusProto.fromStatusAndTrailers(status, trailers)?.detailsList?.isEmpty() == false) return status
        return when (status.code) {
            Status.Code.UNAVAILABLE -> status.withDescription(
                "the service cannot be reached: is `hummock serve` running? target $target (${status.why ?: status.description})",
            )
            Status.Code.DEADLINE_EXCEEDED -> status.withDescription("the service did not answer in time; target $target")
            else -> status
        }
    }
}

/** What kept a call from the service, which gRPC leaves to the cause; null where there is none. */
internal val Status.why: String?
    get() = generateSequence(cause) { it.cause }.take(DEEPEST).lastOrNull()?.let { "${it.javaClass.simpleName}: ${it.message}" }
