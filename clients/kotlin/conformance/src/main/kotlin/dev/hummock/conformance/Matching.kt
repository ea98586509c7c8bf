package dev.hummock.conformance

import com.google.gson.JsonArray
import com.google.gson.JsonElement
import com.google.gson.JsonNull
import com.google.gson.JsonObject
import com.google.gson.JsonPrimitive
import java.nio.file.Path
import kotlin.io.path.readText
import kotlin.math.abs

private const val NEAR = 1e-6

/** Whether a reply is as a case expects it; [golden] is the folder of golden files. */
class Matching(private val golden: Path) {
    /** Why they do not match, with the place; null where they do. A value that is not there is JSON's null. */
    fun mismatch(expected: JsonElement, got: JsonElement, where: String = ""): String? = when (expected) {
        is JsonObject -> ofObject(expected, got, where)
        is JsonArray -> ofArray(expected, got, where)
        else -> said(where, expected, got).takeUnless { equal(expected, got) }
    }

    private fun ofObject(expected: JsonObject, got: JsonElement, where: String): String? {
        val rule = expected.keySet().firstOrNull { it.startsWith("$") }
        if (rule != null) return said(where, expected, got).takeUnless { holds(rule, expected[rule], got) }
        if (got !is JsonObject) return said(where, expected, got)
        return expected.entrySet().firstNotNullOfOrNull { (key, value) ->
            mismatch(value, got[key] ?: JsonNull.INSTANCE, "$where.$key")
        }
    }

    private fun ofArray(expected: JsonArray, got: JsonElement, where: String): String? {
        if (got !is JsonArray || got.size() != expected.size()) return said(where, expected, got)
        return expected.indices().firstNotNullOfOrNull { mismatch(expected[it], got[it], "$where[$it]") }
    }

    private fun holds(rule: String, expected: JsonElement, got: JsonElement): Boolean = when (rule) {
        "\$any" -> got !is JsonNull
        "\$absent" -> got is JsonNull
        "\$contains" -> if (got is JsonArray) got.any { mismatch(expected, it) == null } else expected.text() in got.text()
        "\$matches" -> isText(got) && Regex(expected.asString).containsMatchIn(got.asString)
        "\$at_least" -> got is JsonPrimitive && got.asDouble >= expected.asDouble
        "\$length" -> expected.asInt == if (got is JsonArray) got.size() else got.takeIf(::isText)?.asString?.let { it.codePointCount(0, it.length) }
        "\$golden" -> isText(got) && got.asString == golden.resolve(expected.asString).readText()
        else -> error("no rule is called $rule")
    }

    private fun equal(expected: JsonElement, got: JsonElement): Boolean =
        if (isNumber(expected) && isNumber(got)) abs(expected.asDouble - got.asDouble) <= NEAR else expected == got

    private fun said(where: String, expected: JsonElement, got: JsonElement) =
        "${where.removePrefix(".").ifEmpty { "reply" }}: expected $expected, got $got"

    private fun isNumber(value: JsonElement) = value is JsonPrimitive && value.isNumber

    private fun isText(value: JsonElement) = value is JsonPrimitive && value.isString

    private fun JsonElement.text(): String = if (isText(this)) asString else toString()

    private fun JsonArray.indices() = 0 until size()
}
