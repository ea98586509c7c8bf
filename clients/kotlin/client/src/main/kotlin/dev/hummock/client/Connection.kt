package dev.hummock.client

import io.grpc.CallOptions
import io.grpc.Channel
import io.grpc.ChannelCredentials
import io.grpc.ClientCall
import io.grpc.ClientInterceptor
import io.grpc.ClientInterceptors
import io.grpc.ConnectivityState.TRANSIENT_FAILURE
import io.grpc.InsecureChannelCredentials
import io.grpc.ManagedChannel
import io.grpc.MethodDescriptor
import io.grpc.TlsChannelCredentials
import io.grpc.okhttp.OkHttpChannelBuilder
import java.util.concurrent.TimeUnit.MINUTES
import java.util.concurrent.TimeUnit.SECONDS

/** Replies stay below 4 MiB unless a request asks for more (`max_reply_bytes`). */
private const val LARGEST_REPLY_BYTES = 16 shl 20

/** Above it gRPC forgets a request as soon as it is sent; its own default is 1 MiB, and a Learn may have 4 MiB. */
private const val LARGEST_REPEATED_BYTES = 5L shl 20

/** The name that certificates of a service on a Unix socket are for. */
private const val LOCAL = "localhost"

/** One connection with the client's rules, for stubs of any kind. It begins to connect when it is made. */
internal class Connection(text: String?, options: ClientOptions) : AutoCloseable {
    val target: Target = Target.of(text)
    private val access = Access.of(target, options)
    private val managed: ManagedChannel = managed(target, access)

    /** What stubs are made of. */
    val channel: Channel = ClientInterceptors.intercept(
        managed,
        CallRules(target, options.readDeadline, options.writeDeadline, access.token),
        Reconnecting(managed),
    )

    init {
        managed.getState(true)
    }

    /** Ends the connection; calls that run fail. */
    override fun close() {
        managed.shutdownNow()
    }
}

/** A service that has restarted is found at the next call; gRPC's own pauses grow to two minutes. */
private class Reconnecting(private val managed: ManagedChannel) : ClientInterceptor {
    override fun <Q, R> interceptCall(
        method: MethodDescriptor<Q, R>,
        options: CallOptions,
        next: Channel,
    ): ClientCall<Q, R> {
        if (managed.getState(false) == TRANSIENT_FAILURE) managed.resetConnectBackoff()
        return next.newCall(method, options)
    }
}

private fun managed(target: Target, access: Access): ManagedChannel {
    val builder = when (target) {
        is Target.Tcp -> OkHttpChannelBuilder.forTarget("dns:///$target", credentials(access))
        // No name is looked up: the socket factory knows the way.
        is Target.Unix -> OkHttpChannelBuilder.forTarget("dns:///127.0.0.1:1", credentials(access))
            .socketFactory(UnixSocketFactory(target.path))
            .overrideAuthority(LOCAL)
    }
    // A company's proxy does not know this machine's loopback.
    if (target.isLocal) builder.proxyDetector { null }
    return builder
        .disableServiceConfigLookUp()
        .defaultServiceConfig(Contract.serviceConfig())
        .enableRetry()
        .perRpcBufferLimit(LARGEST_REPEATED_BYTES)
        .maxInboundMessageSize(LARGEST_REPLY_BYTES)
        .keepAliveTime(1, MINUTES)
        .keepAliveTimeout(20, SECONDS)
        .build()
}

private fun credentials(access: Access): ChannelCredentials {
    if (!access.isSecure) return InsecureChannelCredentials.create()
    val authorities = access.authorities ?: return TlsChannelCredentials.create()
    return TlsChannelCredentials.newBuilder().trustManager(authorities.inputStream()).build()
}
