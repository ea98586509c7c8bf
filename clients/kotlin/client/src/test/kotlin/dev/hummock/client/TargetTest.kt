package dev.hummock.client

import java.nio.file.Path
import kotlin.test.Test
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import kotlin.test.assertFalse
import kotlin.test.assertTrue
import org.junit.jupiter.params.ParameterizedTest
import org.junit.jupiter.params.provider.CsvSource
import org.junit.jupiter.params.provider.ValueSource

class TargetTest {
    @ParameterizedTest
    @CsvSource(
        "127.0.0.1:7421, 127.0.0.1:7421",
        "memory.example, memory.example:7420",
        "memory.example:443, memory.example:443",
        "[::1], [::1]:7420",
        "[::1]:1, [::1]:1",
        "unix:///run/hummock.sock, unix:/run/hummock.sock",
        "unix:hummock.sock, unix:hummock.sock",
    )
    fun `what names a service is taken`(text: String, resolved: String) {
        assertEquals(resolved, Target.of(text, emptyMap()).toString())
    }

    @ParameterizedTest
    @ValueSource(strings = ["", ":", "host:", ":1", "host:0", "host:65536", "host:a", "::1:1", "unix:", "http://host:1"])
    fun `what names none is refused`(text: String) {
        assertFailsWith<IllegalArgumentException> { Target.of(text, emptyMap()) }
    }

    @Test
    fun `without a target the environment tells it, and else it is the default`() {
        assertEquals("a:1", Target.of(null, mapOf(Target.VARIABLE to "a:1")).toString())
        assertEquals("127.0.0.1:7420", Target.of(null, mapOf(Target.VARIABLE to "")).toString())
        assertEquals(Target.Unix(Path.of("/s")), Target.of(null, mapOf(Target.VARIABLE to "unix:///s")))
    }

    @ParameterizedTest
    @ValueSource(strings = ["localhost:1", "127.0.0.1:1", "127.8.0.255:1", "[::1]:1", "unix:///s"])
    fun `this machine is local`(text: String) = assertTrue(Target.of(text, emptyMap()).isLocal)

    @ParameterizedTest
    @ValueSource(strings = ["10.0.0.1:1", "127.0.0.1.example:1", "localhost.example:1", "128.0.0.1:1", "[::2]:1"])
    fun `others are not`(text: String) = assertFalse(Target.of(text, emptyMap()).isLocal)
}
