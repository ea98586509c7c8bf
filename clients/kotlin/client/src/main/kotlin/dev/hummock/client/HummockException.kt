package dev.hummock.client

import com.google.protobuf.Any
import com.google.protobuf.InvalidProtocolBufferException
import com.google.protobuf.Message
import com.google.rpc.BadRequest
import com.google.rpc.ErrorInfo
import com.google.rpc.RetryInfo
import io.grpc.Metadata
import io.grpc.Status
import io.grpc.StatusException
import io.grpc.StatusRuntimeException
import io.grpc.protobuf.StatusProto
import java.time.Duration

/** A field of the request, by its path (`memories[0].content`), and the rule that it breaks. */
data class FieldViolation(val field: String, val rule: String)

/**
 * A call failed.
 *
 * @property code gRPC's status code.
 * @property reason Stable, in upper case, for example `MEMORY_NOT_FOUND` (the contract's ErrorReason lists them); the code's
 *     name when the service gave none.
 * @property description For people.
 * @property fieldViolations Every field of the request that is wrong; empty when none is.
 * @property metadata The facts of the description by name.
 * @property retryAfter After which a repeat may succeed; null when the service did not say.
 */
class HummockException internal constructor(
    val code: Status.Code,
    val reason: String,
    val description: String,
    val fieldViolations: List<FieldViolation>,
    val metadata: Map<String, String>,
    val retryAfter: Duration?,
    cause: Throwable?,
) : RuntimeException("$reason: $description", cause) {
    companion object {
        /** The exception that tells what a generated stub threw; null where [thrown] is none of gRPC's. */
        @JvmStatic
        fun of(thrown: Throwable): HummockException? = when (thrown) {
            is HummockException -> thrown
            is StatusException -> of(thrown.status, thrown.trailers, thrown)
            is StatusRuntimeException -> of(thrown.status, thrown.trailers, thrown)
            else -> null
        }

        /** The exception that tells what a status inside a reply tells, such as that of a batch which failed. */
        @JvmStatic
        fun of(status: com.google.rpc.Status): HummockException =
            told(Status.fromCodeValue(status.code).code, status.message, status.detailsList, null)

        private fun of(status: Status, trailers: Metadata?, cause: Throwable): HummockException {
            val details = StatusProto.fromStatusAndTrailers(status, trailers)?.detailsList.orEmpty()
            return told(status.code, said(status), details, cause)
        }

        /** What the service says; of a call that failed on this side also why. */
        private fun said(status: Status): String {
            val said = status.description.orEmpty()
            val why = status.why
            return if (why == null || why in said) said else "${said.ifEmpty { "the call failed" }} ($why)"
        }

        private fun told(code: Status.Code, message: String, details: List<Any>, cause: Throwable?): HummockException {
            val info = details.first<ErrorInfo>() ?: ErrorInfo.getDefaultInstance()
            val broken = details.first<BadRequest>()?.fieldViolationsList.orEmpty()
            val delay = details.first<RetryInfo>()?.retryDelay
            return HummockException(
                code = code,
                reason = info.reason.ifEmpty { code.name },
                description = message,
                fieldViolations = broken.map { FieldViolation(it.field, it.description) },
                metadata = info.metadataMap.toMap(),
                retryAfter = delay?.let { Duration.ofSeconds(it.seconds, it.nanos.toLong()) },
                cause = cause,
            )
        }

        private inline fun <reified T : Message> List<Any>.first(): T? = try {
            firstOrNull { it.`is`(T::class.java) }?.unpack(T::class.java)
        } catch (_: InvalidProtocolBufferException) {
            // What cannot be read says nothing; the code and the message still do.
            null
        }
    }
}

/** What [call] gives; what gRPC throws becomes a [HummockException]. */
internal inline fun <R> typed(call: () -> R): R = try {
    call()
} catch (thrown: StatusException) {
    throw HummockException.of(thrown) ?: thrown
} catch (thrown: StatusRuntimeException) {
    throw HummockException.of(thrown) ?: thrown
}
