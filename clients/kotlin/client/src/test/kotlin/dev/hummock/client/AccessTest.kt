package dev.hummock.client

import kotlin.test.Test
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import kotlin.test.assertFalse
import kotlin.test.assertTrue

class AccessTest {
    private val here = Target.of("127.0.0.1:1", emptyMap())
    private val elsewhere = Target.of("memory.example:1", emptyMap())

    @Test
    fun `a token is never sent to another machine in the clear`() {
        val refused = assertFailsWith<IllegalArgumentException> { access(elsewhere, ClientOptions(token = "s3cret")) }
        assertFalse("s3cret" in refused.message.orEmpty())
        assertFailsWith<IllegalArgumentException> {
            Access.of(elsewhere, ClientOptions(), mapOf(Access.VARIABLE to "s3cret"))
        }
    }

    @Test
    fun `over TLS and on this machine it is sent`() {
        assertEquals("s3cret", access(elsewhere, ClientOptions(tls = true).withToken("s3cret")).token)
        assertEquals("s3cret", access(here, ClientOptions(token = "s3cret")).token)
    }

    @Test
    fun `the environment's token is taken unless there is one, also an empty one`() {
        val environment = mapOf(Access.VARIABLE to "theirs")
        assertEquals("theirs", Access.of(here, ClientOptions(), environment).token)
        assertEquals("", Access.of(elsewhere, ClientOptions(token = ""), environment).token)
    }

    @Test
    fun `what no header can hold is refused`() {
        for (token in listOf("a b", "a\nb", "令牌")) {
            assertFailsWith<IllegalArgumentException> { access(here, ClientOptions(token = token)) }
        }
    }

    @Test
    fun `TLS is spoken where it is asked for`() {
        assertTrue(access(elsewhere, ClientOptions().withTls()).isSecure)
        assertFalse(access(elsewhere, ClientOptions()).isSecure)
    }

    private fun access(target: Target, options: ClientOptions) = Access.of(target, options, emptyMap())
}
