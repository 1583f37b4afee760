// Chat templates: Jinja as transformers runs it, from text to text.
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

/// The texts that a template spells: what is between its tags, and the values of its strings. Empty
/// where its words cannot be read.
std::vector<std::string> literalsOf(std::string_view source);

class Template {
public:
  /// Errors begin with `line N: ` and name the construct that is wrong or not supported.
  static Result<Template> parse(std::string_view source, const Limits &limits = {});

  /// Runs the template with the entries of both objects as variables. The texts of `own` are as
  /// trustworthy as the template; those of `conversation` are marked in the result, with all that
  /// is made of them, but for the roles of its `messages` that are plain words: templates write
  /// special tokens with them. Errors as in parse; those that the template raises say so.
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
