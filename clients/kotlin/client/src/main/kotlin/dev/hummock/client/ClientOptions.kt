package dev.hummock.client

import java.nio.file.Files
import java.nio.file.Path
import java.time.Duration

/**
 * How a client calls. Kotlin names the arguments, Java changes one at a time: `new ClientOptions().withToken("…")`.
 *
 * @property token Sent as a bearer token with every call; without TLS only to this machine. Null means the environment's
 *     HUMMOCK_TOKEN, empty means none at all.
 * @property tls Whether to speak TLS, and trust the authorities that Java brings with it.
 * @property rootCertificates The authorities to trust instead, a PEM file; it means TLS.
 * @property readDeadline After which a call that changes nothing is given up, unless the call itself says otherwise.
 * @property writeDeadline The same of calls that write. Streams have no deadline of their own.
 */
class ClientOptions(
    val token: String? = null,
    val tls: Boolean = false,
    val rootCertificates: Path? = null,
    val readDeadline: Duration = Duration.ofSeconds(5),
    val writeDeadline: Duration = Duration.ofSeconds(30),
) {
    /** The same with this token. */
    fun withToken(token: String) = changed(token = token)

    /** The same over TLS. */
    fun withTls() = changed(tls = true)

    /** The same over TLS, trusting the authorities of this PEM file alone. */
    fun withRootCertificates(pem: Path) = changed(rootCertificates = pem)

    /** The same with these deadlines. */
    fun withDeadlines(read: Duration, write: Duration) = changed(readDeadline = read, writeDeadline = write)

    private fun changed(
        token: String? = this.token,
        tls: Boolean = this.tls,
        rootCertificates: Path? = this.rootCertificates,
        readDeadline: Duration = this.readDeadline,
        writeDeadline: Duration = this.writeDeadline,
    ) = ClientOptions(token, tls, rootCertificates, readDeadline, writeDeadline)
}

/** Over what a client calls, and what it shows: decided once, when it is made. */
internal class Access private constructor(val isSecure: Boolean, val authorities: ByteArray?, val token: String) {
    companion object {
        const val VARIABLE = "HUMMOCK_TOKEN"

        /**
         * The access that the options ask for.
         *
         * @throws IllegalArgumentException The token is none that a header can hold, or would go to another machine in the
         *     clear.
         * @throws java.io.IOException The file of authorities cannot be read.
         */
        fun of(target: Target, options: ClientOptions, environment: Map<String, String> = System.getenv()): Access {
            val token = options.token ?: environment[VARIABLE].orEmpty()
            val isSecure = options.tls || options.rootCertificates != null
            require(token.all { it in '!'..'~' }) {
                "the token has characters that no token has: white space, or others than ASCII"
            }
            require(token.isEmpty() || isSecure || target.isLocal) {
                "a token is not sent to $target in the clear; ask for TLS (tls, or rootCertificates)"
            }
            return Access(isSecure, options.rootCertificates?.let(Files::readAllBytes), token)
        }
    }
}
