// Base class of readers of the fields of a request.
#ifndef MICA_BACKENDS_RUNTIME_SERVE_FIELDREADER_H
#define MICA_BACKENDS_RUNTIME_SERVE_FIELDREADER_H

#include "backends/runtime/engine/Request.h"
#include "backends/runtime/serve/ApiError.h"
#include "backends/runtime/support/NestedJson.h"

#include <algorithm>
#include <cstdint>
#include <stop_token>
#include <string>
#include <utility>

namespace mica::rt::serve {

/// Thrown by readers of fields, and caught in parseCompletionRequest.
struct BadRequest {
  ApiError error;
};

/// Reads values; errors name the field being read.
class FieldReader {
protected:
  explicit FieldReader(std::stop_token stop) : stop(std::move(stop)) {}

  /// Called between pieces of work that may take long.
  void requireNotStopped() const {
    if (stop.stop_requested())
      throw BadRequest{shuttingDown()};
  }
  [[noreturn]] void fail(const std::string &message) const {
    throw BadRequest{{.message = message, .param = field}};
  }
  [[noreturn]] void failType(const std::string &expected) const {
    fail("'" + field + "' is not " + expected);
  }

  double number(const Json &value, SettingRange<double> range) const {
    if (!value.is_number() || !range.contains(value.get<double>()))
      failType("a number from " + Json(range.min).dump() + " to " + Json(range.max).dump());
    return value.get<double>();
  }
  int64_t wholeNumber(const Json &value, SettingRange<int64_t> range) const {
    std::optional<int64_t> number = wholeNumberWithin(value, range.min, range.max);
    if (!number)
      failType(wholeNumberFrom(range.min, range.max));
    return *number;
  }
  /// What `failType` expects.
  static std::string wholeNumberFrom(int64_t min, int64_t max) {
    return "a whole number from " + std::to_string(min) + " to " + std::to_string(max);
  }
  bool boolean(const Json &value) const {
    if (!value.is_boolean())
      failType("a boolean");
    return value.get<bool>();
  }
  /// The number of entries of an object: null is equivalent to omitting one.
  static size_t numEntries(const Json &object) {
    return static_cast<size_t>(
        std::ranges::count_if(object, [](const Json &entry) { return !entry.is_null(); }));
  }
  std::string string(const Json &value) const {
    if (!value.is_string())
      failType("a string");
    return value.get<std::string>();
  }
  /// The number of tokens after which a prompt is not encoded further: encoding all of a huge text
  /// would take long. A text that is only somewhat too long gets an error with its exact length.
  static size_t maxEncodedTokens(const Manifest &manifest) {
    return 2 * static_cast<size_t>(manifest.maxSeq);
  }
  /// See checkPrompt; `isText`: encoded with the limit maxEncodedTokens.
  void requireFits(const Tokens &prompt, const Manifest &manifest, bool isText) const {
    bool isWhole = !isText || prompt.size() <= maxEncodedTokens(manifest);
    if (Status fits = checkPrompt(manifest, prompt, isWhole); !fits)
      throw BadRequest{{.message = fits.error().message,
                        .param = field,
                        .code = static_cast<int64_t>(prompt.size()) > manifest.maxSeq
                                    ? std::optional<std::string>("context_length_exceeded")
                                    : std::nullopt}};
  }

  std::string field; ///< field being read

private:
  const std::stop_token stop;
};

} // namespace mica::rt::serve

#endif // MICA_BACKENDS_RUNTIME_SERVE_FIELDREADER_H
