// A value or an error: error handling in compiled programs, which do not use exceptions across
// functions (C++20 has no std::expected).
#ifndef MICA_BACKENDS_RUNTIME_SUPPORT_RESULT_H
#define MICA_BACKENDS_RUNTIME_SUPPORT_RESULT_H

#include <string>
#include <utility>
#include <variant>

namespace mica::rt {

/// The message of an error line `mica: error: FILE: PROBLEM; HINT`, from FILE or PROBLEM to the
/// end. One line, without the final newline.
struct Error {
  std::string message;
};

/// Either a T or an Error. `if (!result) return result.error();` propagates the error.
template <typename T> class [[nodiscard]] Result {
public:
  Result(T value) : state(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state(std::in_place_index<1>, std::move(error)) {}

  explicit operator bool() const { return state.index() == 0; }
  T &operator*() & { return *std::get_if<0>(&state); }
  const T &operator*() const & { return *std::get_if<0>(&state); }
  T &&operator*() && { return std::move(*std::get_if<0>(&state)); }
  T *operator->() { return std::get_if<0>(&state); }
  const T *operator->() const { return std::get_if<0>(&state); }
  /// Valid only if there is no value.
  const Error &error() const { return *std::get_if<1>(&state); }

private:
  std::variant<T, Error> state;
};

/// Success or an Error.
template <> class [[nodiscard]] Result<void> {
public:
  Result() = default;
  Result(Error error) : failure(std::move(error)), failed(true) {}

  explicit operator bool() const { return !failed; }
  const Error &error() const { return failure; }

private:
  Error failure;
  bool failed = false;
};

using Status = Result<void>;

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_SUPPORT_RESULT_H
