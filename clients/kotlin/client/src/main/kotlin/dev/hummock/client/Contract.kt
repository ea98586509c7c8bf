package dev.hummock.client

import com.google.protobuf.Descriptors.FieldDescriptor
import com.google.protobuf.Message
import dev.hummock.v1.AdminServiceGrpc
import dev.hummock.v1.ContextServiceGrpc
import dev.hummock.v1.LearningServiceGrpc
import dev.hummock.v1.MemoryServiceGrpc
import dev.hummock.v1.ProjectServiceGrpc
import dev.hummock.v1.SessionServiceGrpc
import io.grpc.MethodDescriptor
import io.grpc.ServiceDescriptor
import io.grpc.protobuf.ProtoMethodDescriptorSupplier
import java.util.UUID

private const val REQUEST_ID = "request_id"

/** What the client knows of the contract's calls: which may be repeated, and what makes a write so. */
internal object Contract {
    private val SERVICES: List<ServiceDescriptor>
        get() = listOf(
            ContextServiceGrpc.getServiceDescriptor(),
            MemoryServiceGrpc.getServiceDescriptor(),
            SessionServiceGrpc.getServiceDescriptor(),
            ProjectServiceGrpc.getServiceDescriptor(),
            LearningServiceGrpc.getServiceDescriptor(),
            AdminServiceGrpc.getServiceDescriptor(),
        )

    private val RETRY = mapOf(
        "maxAttempts" to 4.0,
        "initialBackoff" to "0.1s",
        "maxBackoff" to "1s",
        "backoffMultiplier" to 2.0,
        // CANCELLED: a service that has more calls than it can read ends those that come, unread.
        "retryableStatusCodes" to listOf("UNAVAILABLE", "CANCELLED"),
    )

    /** gRPC's service config: reads, and writes that a request_id makes safe, are repeated when the service is away. */
    fun serviceConfig(): Map<String, Any> {
        val names = SERVICES.flatMap { it.methods }.filter(::mayBeRepeated).map {
            mapOf("service" to it.serviceName, "method" to it.bareMethodName)
        }
        return mapOf("methodConfig" to listOf(mapOf("name" to names, "retryPolicy" to RETRY)))
    }

    /** The request; of a write without a request_id one that has it, so that it may be repeated. */
    fun <Q> withRequestId(request: Q): Q {
        val message = request as? Message ?: return request
        val field = requestIdOf(message.descriptorForType.fields) ?: return request
        if ((message.getField(field) as String).isNotEmpty()) return request
        val named = message.toBuilder().setField(field, UUID.randomUUID().toString()).build()
        @Suppress("UNCHECKED_CAST") // A message's builder builds messages of its class.
        return named as Q
    }

    private fun mayBeRepeated(method: MethodDescriptor<*, *>): Boolean {
        if (method.isSafe) return true
        val supplier = method.schemaDescriptor as ProtoMethodDescriptorSupplier
        return method.type.clientSendsOneMessage() &&
            requestIdOf(supplier.methodDescriptor.inputType.fields) != null
    }

    private fun requestIdOf(fields: List<FieldDescriptor>) = fields.firstOrNull { it.name == REQUEST_ID }
}
