package dev.hummock.client

import com.google.protobuf.Any
import com.google.rpc.BadRequest
import com.google.rpc.Code
import com.google.rpc.ErrorInfo
import com.google.rpc.RetryInfo
import dev.hummock.v1.ContextServiceGrpcKt.ContextServiceCoroutineImplBase
import dev.hummock.v1.LearnRequest
import dev.hummock.v1.LearnResponse
import dev.hummock.v1.RecallRequest
import dev.hummock.v1.RecallResponse
import dev.hummock.v1.RenderRequest
import dev.hummock.v1.RenderResponse
import dev.hummock.v1.learnResponse
import dev.hummock.v1.promptMessage
import dev.hummock.v1.recallResponse
import dev.hummock.v1.renderResponse
import io.grpc.Context
import io.grpc.Contexts
import io.grpc.InsecureServerCredentials
import io.grpc.Metadata
import io.grpc.Server
import io.grpc.ServerCall
import io.grpc.ServerCallHandler
import io.grpc.ServerInterceptor
import io.grpc.Status
import io.grpc.okhttp.OkHttpServerBuilder
import io.grpc.protobuf.StatusProto
import java.net.InetAddress
import java.net.InetSocketAddress
import java.util.concurrent.CopyOnWriteArrayList
import java.util.concurrent.TimeUnit.MILLISECONDS
import kotlinx.coroutines.awaitCancellation

/** A service over a real socket that takes down how it was called, and answers in ways that a real one seldom does. */
class Service(port: Int = 0) : AutoCloseable {
    /** Metadata of each call. */
    val headers = CopyOnWriteArrayList<Metadata>()

    /** Milliseconds that each call had left; null where it had no deadline. */
    val left = CopyOnWriteArrayList<Long?>()

    /** What was learnt, failed calls too. */
    val learnt = CopyOnWriteArrayList<LearnRequest>()

    /** What was rendered. */
    val rendered = CopyOnWriteArrayList<RenderRequest>()

    private val server: Server =
        OkHttpServerBuilder.forPort(InetSocketAddress(InetAddress.getLoopbackAddress(), port), InsecureServerCredentials.create())
            .addService(Calls())
            .intercept(Watching())
            .build()
            .start()

    /** Where it listens. */
    val target = "127.0.0.1:${server.port}"

    override fun close() {
        server.shutdownNow().awaitTermination()
    }

    private inner class Calls : ContextServiceCoroutineImplBase() {
        /** Fails with what a connection that breaks gives, then with what a service gives that has more calls than it can read. */
        override suspend fun learn(request: LearnRequest): LearnResponse {
            learnt += request
            if (learnt.size == 1) throw Status.UNAVAILABLE.asException()
            if (learnt.size == 2) throw Status.CANCELLED.asException()
            return learnResponse { seq = 7 }
        }

        override suspend fun recall(request: RecallRequest): RecallResponse {
            if (request.queryText == "wrong") throw StatusProto.toStatusException(WRONG)
            return recallResponse { seq = 3 }
        }

        /** The project says what happens. */
        override suspend fun render(request: RenderRequest): RenderResponse {
            rendered += request
            return when (request.project) {
                "slow" -> awaitCancellation()
                "broken" -> throw Status.INTERNAL.asException()
                "empty" -> RenderResponse.getDefaultInstance()
                else -> renderResponse {
                    text = "a memory"
                    val prompt = if (request.prompt.isEmpty()) text else "${request.prompt} + $text"
                    // Earlier services wrote the section alone.
                    if (request.hasPrompt() && request.project != "earlier") messages += promptMessage { content = prompt }
                }
            }
        }
    }

    private inner class Watching : ServerInterceptor {
        override fun <Q, R> interceptCall(
            call: ServerCall<Q, R>,
            sent: Metadata,
            next: ServerCallHandler<Q, R>,
        ): ServerCall.Listener<Q> {
            headers += sent
            left += Context.current().deadline?.timeRemaining(MILLISECONDS)
            return Contexts.interceptCall(Context.current(), call, sent, next)
        }
    }

    companion object {
        private val WRONG: com.google.rpc.Status = com.google.rpc.Status.newBuilder()
            .setCode(Code.INVALID_ARGUMENT_VALUE)
            .setMessage("it is wrong")
            .addDetails(
                Any.pack(
                    ErrorInfo.newBuilder().setReason("INVALID_REQUEST").setDomain("hummock.dev")
                        .putMetadata("limit", "3").build(),
                ),
            )
            .addDetails(
                Any.pack(
                    BadRequest.newBuilder().addFieldViolations(
                        BadRequest.FieldViolation.newBuilder().setField("query_text").setDescription("must be right"),
                    ).build(),
                ),
            )
            .addDetails(
                Any.pack(
                    RetryInfo.newBuilder()
                        .setRetryDelay(com.google.protobuf.Duration.newBuilder().setNanos(250_000_000)).build(),
                ),
            )
            .build()
    }
}
