// Chat templates in Jinja, rendered as by transformers.
#ifndef MICA_BACKENDS_RUNTIME_TEXT_JINJA_TEMPLATE_H
#define MICA_BACKENDS_RUNTIME_TEXT_JINJA_TEMPLATE_H

#include "backends/runtime/support/Result.h"
#include "backends/runtime/text/jinja/Limits.h"
#include "backends/runtime/text/jinja/TrackedText.h"

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace mica::rt::jinja {

/// A Clock.
std::string localTime(const std::string &format);

/// The literal texts of a template: the text between its tags and its string literals. Empty if the
/// template cannot be tokenized.
std::vector<std::string> literalsOf(std::string_view source);

class Template {
public:
  /// Errors begin with `line N: ` and name the construct that is invalid or unsupported.
  static Result<Template> parse(std::string_view source, const Limits &limits = {});

  /// Runs the template with the entries of both objects as variables. The texts of `own` are
  /// trusted like the template; those of `conversation` and all text derived from them are marked
  /// as untrusted in the result, except roles of `messages` that are plain words, with which
  /// templates write special tokens. Errors as in parse; errors raised by the template say so.
  Result<TrackedText> render(const nlohmann::ordered_json &own,
                             const nlohmann::ordered_json &conversation,
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

#endif // MICA_BACKENDS_RUNTIME_TEXT_JINJA_TEMPLATE_H
