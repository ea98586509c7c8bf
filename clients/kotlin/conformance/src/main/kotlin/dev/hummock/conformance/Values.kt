package dev.hummock.conformance

import com.google.gson.JsonArray
import com.google.gson.JsonElement
import com.google.gson.JsonObject
import com.google.gson.JsonPrimitive

private val SAVED = Regex("""\$\{(\w+)}""")

/** What earlier steps have saved by name, and what is made of a case's JSON with it. */
class Values(project: String) {
    private val saved = mutableMapOf("project" to project)

    /** The value with what was saved in place of `${name}`, and long strings written out. */
    fun filled(value: JsonElement): JsonElement = filled(value, saved)

    private fun filled(value: JsonElement, saved: Map<String, String>): JsonElement = when {
        value is JsonArray -> JsonArray().apply { value.forEach { add(filled(it, saved)) } }
        value is JsonObject && value.has("\$repeat") -> {
            val (text, times) = value.getAsJsonArray("\$repeat").toList()
            JsonPrimitive(text.asString.repeat(times.asInt))
        }
        value is JsonObject && value.has("\$each") -> {
            val (times, one) = value.getAsJsonArray("\$each").toList()
            JsonArray().apply { for (number in 1..times.asInt) add(filled(one, saved + ("n" to "$number"))) }
        }
        value is JsonObject ->
            JsonObject().apply { value.entrySet().forEach { (key, one) -> add(key, filled(one, saved)) } }
        value is JsonPrimitive && value.isString ->
            JsonPrimitive(SAVED.replace(value.asString) { saved.getValue(it.groupValues[1]) })
        else -> value
    }

    /** Saves what JSON pointers into the reply point to, a number as a string. */
    fun save(pointers: JsonObject, reply: JsonElement) {
        for ((name, pointer) in pointers.entrySet()) {
            saved[name] = pointer.asString.split("/").drop(1).fold(reply) { at, part ->
                if (at is JsonArray) at[part.toInt()] else at.asJsonObject[part]
            }.asString
        }
    }
}
