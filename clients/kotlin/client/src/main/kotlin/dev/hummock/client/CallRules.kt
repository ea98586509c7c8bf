package dev.hummock.client

import io.grpc.CallOptions
import io.grpc.Channel
import io.grpc.ClientCall
import io.grpc.ClientInterceptor
import io.grpc.ForwardingClientCall.SimpleForwardingClientCall
import io.grpc.Metadata
import io.grpc.MethodDescriptor
import java.time.Duration
import java.util.concurrent.TimeUnit.NANOSECONDS

private val AUTHORIZATION = Metadata.Key.of("authorization", Metadata.ASCII_STRING_MARSHALLER)

/** Gives every call of any stub what the client promises: a deadline, the token, and writes a request_id. */
internal class CallRules(
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
                super.start(listener, headers)
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
}
