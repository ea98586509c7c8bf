package dev.hummock.overhead

import dev.hummock.client.HummockClient
import dev.hummock.v1.GetMemoryRequest
import dev.hummock.v1.MemoryServiceGrpcKt.MemoryServiceCoroutineStub
import dev.hummock.v1.getMemoryRequest
import io.grpc.InsecureChannelCredentials
import io.grpc.okhttp.OkHttpChannelBuilder
import kotlin.system.exitProcess
import kotlinx.coroutines.runBlocking

/** Of each, before those that count: as many as it takes until the machine code is there. */
private const val WARM_UP_CALLS = 10_000

private const val NANOSECONDS = 1e9

/**
 * Times one read of a memory through the generated stub and through the client, in turns, and writes the seconds of each
 * as JSON; bench/clients.py runs it. Arguments: target, project, id, number of calls.
 */
fun main(arguments: Array<String>) {
    val (target, project, id, calls) = arguments
    val request = getMemoryRequest {
        this.project = project
        this.id = id
    }
    val channel = OkHttpChannelBuilder.forTarget("dns:///$target", InsecureChannelCredentials.create()).build()
    HummockClient(target).use { client ->
        runBlocking { println(inTurns(MemoryServiceCoroutineStub(channel), client, request, calls.toInt())) }
    }
    channel.shutdownNow()
    exitProcess(0)
}

/** The seconds of so many calls of each, by `raw_s` and `facade_s`. */
private suspend fun inTurns(
    raw: MemoryServiceCoroutineStub,
    facade: HummockClient,
    request: GetMemoryRequest,
    calls: Int,
): String {
    val rawS = mutableListOf<Double>()
    val facadeS = mutableListOf<Double>()
    for (turn in 0 until WARM_UP_CALLS + calls) {
        // Whoever comes second finds warm caches, so they take turns in that, too.
        for (isRaw in if (turn % 2 == 0) listOf(true, false) else listOf(false, true)) {
            val tookS = seconds { if (isRaw) raw.getMemory(request) else facade.memories { getMemory(request) } }
            if (turn >= WARM_UP_CALLS) (if (isRaw) rawS else facadeS) += tookS
        }
    }
    return """{"raw_s": $rawS, "facade_s": $facadeS}"""
}

private suspend fun seconds(call: suspend () -> Unit): Double {
    val began = System.nanoTime()
    call()
    return (System.nanoTime() - began) / NANOSECONDS
}
