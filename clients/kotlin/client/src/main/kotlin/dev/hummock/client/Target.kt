package dev.hummock.client

import java.nio.file.Path

/** Where the service is. */
internal sealed interface Target {
    /** Whether it is on this machine, so that what is said to it in the clear stays here. */
    val isLocal: Boolean

    /** A service that listens on TCP; [host] is a name or an address, IPv6 in brackets. */
    data class Tcp(val host: String, val port: Int) : Target {
        override val isLocal get() = host == "localhost" || host == "[::1]" || LOOPBACK.matches(host)

        override fun toString() = "$host:$port"
    }

    /** A service that listens on a Unix socket. */
    data class Unix(val path: Path) : Target {
        override val isLocal get() = true

        override fun toString() = "unix:$path"
    }

    companion object {
        const val VARIABLE = "HUMMOCK_TARGET"
        private const val DEFAULT_HOST = "127.0.0.1"
        private const val DEFAULT_PORT = 7420
        private val LOOPBACK = Regex("""127(\.(25[0-5]|2[0-4]\d|1?\d?\d)){3}""")

        /**
         * What [text] names: `host`, `host:port`, `[ipv6]:port`, `unix:path` or `unix:///path`. Null means
         * HUMMOCK_TARGET of [environment], and without it 127.0.0.1:7420.
         *
         * @throws IllegalArgumentException It is none of these.
         */
        fun of(text: String?, environment: Map<String, String> = System.getenv()): Target {
            val told = text ?: environment[VARIABLE]?.ifEmpty { null } ?: return Tcp(DEFAULT_HOST, DEFAULT_PORT)
            return if (told.startsWith("unix:")) unix(told) else tcp(told)
        }

        private fun unix(text: String): Target {
            val path = text.removePrefix("unix:").removePrefix("//")
            require(path.isNotEmpty()) { "$text names no socket; write unix:///path/to/hummock.sock" }
            return Unix(Path.of(path))
        }

        private fun tcp(text: String): Target {
            val hasPort = ':' in text && !text.endsWith("]")
            val host = if (hasPort) text.substringBeforeLast(':') else text
            val port = if (hasPort) text.substringAfterLast(':') else DEFAULT_PORT.toString()
            val isHost = host.isNotEmpty() && '/' !in host && (':' !in host || host.startsWith("["))
            val isPort = port.isNotEmpty() && port.all { it in '0'..'9' } && (port.toIntOrNull() ?: 0) in 1..65535
            require(isHost && isPort) {
                "$text is no target; write host:port, for example $DEFAULT_HOST:$DEFAULT_PORT, or unix:///path"
            }
            return Tcp(host, port.toInt())
        }
    }
}
