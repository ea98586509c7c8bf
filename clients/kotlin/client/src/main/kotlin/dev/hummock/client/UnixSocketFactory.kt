package dev.hummock.client

import java.io.InputStream
import java.io.OutputStream
import java.net.InetAddress
import java.net.InetSocketAddress
import java.net.Socket
import java.net.SocketAddress
import java.net.StandardProtocolFamily.UNIX
import java.net.UnixDomainSocketAddress
import java.nio.ByteBuffer
import java.nio.channels.SocketChannel
import java.nio.file.Path
import javax.net.SocketFactory

/**
 * Connections to the Unix socket at [path], whatever address is asked for.
 *
 * Java speaks Unix sockets through channels alone, and OkHttp through sockets; so a socket is put around a channel.
 */
internal class UnixSocketFactory(private val path: Path) : SocketFactory() {
    override fun createSocket(): Socket = UnixSocket(SocketChannel.open(UNIX), path)

    override fun createSocket(host: String, port: Int): Socket = connected()

    override fun createSocket(host: InetAddress, port: Int): Socket = connected()

    override fun createSocket(host: String, port: Int, localHost: InetAddress, localPort: Int): Socket = connected()

    override fun createSocket(host: InetAddress, port: Int, localHost: InetAddress, localPort: Int): Socket = connected()

    private fun connected() = createSocket().apply {
        try {
            connect(NOWHERE)
        } catch (refused: java.io.IOException) {
            close()
            throw refused
        }
    }
}

private val NOWHERE = InetSocketAddress(InetAddress.getLoopbackAddress(), 0)

/** What of a socket is asked for by gRPC's OkHttp transport, over a blocking channel; TCP's options mean nothing here. */
private class UnixSocket(private val channel: SocketChannel, private val path: Path) : Socket() {
    override fun connect(endpoint: SocketAddress) = connect(endpoint, 0)

    override fun connect(endpoint: SocketAddress, timeout: Int) {
        channel.connect(UnixDomainSocketAddress.of(path))
    }

    // Channels.newInputStream would hold a lock in a read that a write waits for.
    override fun getInputStream() = object : InputStream() {
        override fun read(): Int {
            val one = ByteArray(1)
            return if (read(one, 0, 1) < 0) -1 else one[0].toInt() and 0xff
        }

        override fun read(into: ByteArray, offset: Int, length: Int): Int =
            channel.read(ByteBuffer.wrap(into, offset, length))

        override fun close() = channel.close()
    }

    override fun getOutputStream() = object : OutputStream() {
        override fun write(one: Int) = write(byteArrayOf(one.toByte()), 0, 1)

        override fun write(from: ByteArray, offset: Int, length: Int) {
            val left = ByteBuffer.wrap(from, offset, length)
            while (left.hasRemaining()) channel.write(left)
        }

        override fun close() = channel.close()
    }

    override fun close() = channel.close()

    override fun shutdownInput() {
        channel.shutdownInput()
    }

    override fun shutdownOutput() {
        channel.shutdownOutput()
    }

    override fun isConnected() = channel.isConnected

    override fun isClosed() = !channel.isOpen

    override fun getInetAddress(): InetAddress = NOWHERE.address

    override fun getPort() = 0

    override fun getRemoteSocketAddress(): SocketAddress = NOWHERE

    override fun getLocalSocketAddress(): SocketAddress = NOWHERE

    override fun setTcpNoDelay(on: Boolean) = Unit

    override fun getSoTimeout() = 0

    override fun setSoTimeout(timeout: Int) = Unit
}
