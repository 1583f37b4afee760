// Chat templates: Jinja as transformers runs it, from text to text.
#pragma once

#include "backends/cpu/runtime/Result.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace mica::rt::jinja {

/// What a template may cost. Beyond any of these it is refused.
struct Limits {
  uint64_t sourceBytes = uint64_t(1) << 20;
  uint64_t steps = 20'000'000;            ///< Expressions, statements, items, 64 bytes of text.
  uint64_t textBytes = uint64_t(1) << 28; ///< All texts made on the way.
  uint64_t outputBytes = uint64_t(1) << 26;
  int depth = 400; ///< Of nodes being run, macros within macros included.
};

/// The local time in a format of strftime.
using Clock = std::function<std::string(const std::string &format)>;
std::string localTime(const std::string &format);

class Template {
public:
  /// Errors begin with `line N: ` and name the construct that is wrong or not supported.
  static Result<Template> parse(std::string_view source, const Limits &limits = {});

  /// Runs the template with the entries of the object `context` as variables. Errors as in parse;
  /// those that the template raises say so.
  Result<std::string> render(const nlohmann::ordered_json &context,
                             const Clock &clock = localTime) const;

  Template(Template &&) noexcept;
  Template &operator=(Template &&) noexcept;
  ~Template();

private:
  struct Tree;
  explicit Template(std::unique_ptr<Tree> tree);
  std::unique_ptr<const Tree> tree;
};

} // namespace mica::rt::jinja
