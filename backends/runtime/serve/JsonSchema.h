// Builds JSON Schemas.
#ifndef MICA_BACKENDS_RUNTIME_SERVE_JSONSCHEMA_H
#define MICA_BACKENDS_RUNTIME_SERVE_JSONSCHEMA_H

#include "backends/runtime/engine/GenerationSettings.h"
#include "backends/runtime/serve/ApiError.h"

#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace mica::rt::serve::json_schema {

inline Json typed(const char *type) { return {{"type", type}}; }
inline Json only(Json value) { return {{"const", std::move(value)}}; }
template <typename T> Json ranged(SettingRange<T> range) {
  return {{"type", std::is_integral_v<T> ? "integer" : "number"},
          {"minimum", range.min},
          {"maximum", range.max}};
}
inline Json arrayOf(Json items, std::optional<size_t> max = {}, size_t min = 0) {
  Json schema = {{"type", "array"}, {"items", std::move(items)}};
  if (min > 0)
    schema["minItems"] = min;
  if (max)
    schema["maxItems"] = *max;
  return schema;
}
/// `others`: the schema of additional fields.
inline Json objectOf(Json properties, std::vector<std::string> required, Json others = false) {
  return {{"type", "object"},
          {"properties", std::move(properties)},
          {"required", std::move(required)},
          {"additionalProperties", std::move(others)}};
}
inline Json anyOf(std::vector<Json> schemas) { return {{"anyOf", std::move(schemas)}}; }
inline Json orNull(Json schema) { return anyOf({std::move(schema), typed("null")}); }

} // namespace mica::rt::serve::json_schema

#endif // MICA_BACKENDS_RUNTIME_SERVE_JSONSCHEMA_H
