// Base class of readers of the fields of a request.
#ifndef MICA_BACKENDS_RUNTIME_SERVE_FIELDREADER_H
#define MICA_BACKENDS_RUNTIME_SERVE_FIELDREADER_H

#include "backends/runtime/engine/GenerationSettings.h"
#include "backends/runtime/serve/ApiError.h"
#include "backends/runtime/support/NestedJson.h"

#include <cstdint>
#include <string>

namespace mica::rt::serve {

/// Thrown by readers of fields, and caught in parseCompletionRequest.
struct BadRequest {
  ApiError error;
};

/// Reads values; errors name the field being read.
class FieldReader {
protected:
  [[noreturn]] void fail(const std::string &message) const {
    throw BadRequest{{.message = message, .param = field}};
  }
  [[noreturn]] void failType(const char *expected) const {
    fail("'" + field + "' is not " + expected);
  }

  template <typename T> T within(T value, SettingRange<T> range) const {
    if (!range.contains(value))
      fail("'" + field + "' is not between " + shown(range.min) + " and " + shown(range.max));
    return value;
  }
  double number(const Json &value, SettingRange<double> range) const {
    if (!value.is_number())
      failType("a number");
    return within(value.get<double>(), range);
  }
  int64_t wholeNumber(const Json &value, SettingRange<int64_t> range) const {
    if (!value.is_number_integer())
      failType("a whole number");
    return within(wholeNumberWithin(value, INT64_MIN, INT64_MAX).value_or(INT64_MAX), range);
  }
  bool boolean(const Json &value) const {
    if (!value.is_boolean())
      failType("a boolean");
    return value.get<bool>();
  }
  std::string string(const Json &value) const {
    if (!value.is_string())
      failType("a string");
    return value.get<std::string>();
  }

  std::string field; ///< field being read

private:
  static std::string shown(double value) { return Json(value).dump(); }
  static std::string shown(int64_t value) { return std::to_string(value); }
};

} // namespace mica::rt::serve

#endif // MICA_BACKENDS_RUNTIME_SERVE_FIELDREADER_H
