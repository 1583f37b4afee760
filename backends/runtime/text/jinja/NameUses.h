// Which names a block sets for itself: Jinja2 decides that before it runs a template.
#ifndef MICA_BACKENDS_RUNTIME_TEXT_JINJA_NAMEUSES_H
#define MICA_BACKENDS_RUNTIME_TEXT_JINJA_NAMEUSES_H

#include "backends/runtime/text/jinja/Ast.h"

#include <map>
#include <set>

namespace mica::rt::jinja {

/// Is told of every use of a name as the parser meets it, and returns at the end which names of a
/// block are undefined until the block sets them, whatever the conversation calls so: those that it
/// sets first, in all cases, and that no block around uses.
class NameUses {
public:
  NameUses();
  void load(const std::string &name) { note(Use::Load, name); }
  void store(const Target &target);
  void parameter(const std::string &name) { note(Use::Parameter, name); }
  void parameters(const Target &target);
  /// A block with a scope of its own; entered twice, the second time continues with the first.
  /// Null: an expression with such a scope.
  void enter(Block *block);
  void leave() { path.pop_back(); }
  /// Three parts of which at most one runs: open, divide, divide, close.
  void open() { note(Use::Open, {}); }
  void divide() { note(Use::Divide, {}); }
  void close() { note(Use::Close, {}); }

  /// Writes `hidden` of all blocks, that of the whole template being `root`.
  void resolve(Block &root);

private:
  struct Use {
    enum Kind { Load, Store, Parameter, Open, Divide, Close } kind;
    std::string name;
  };
  struct Scope {
    Block *block;
    std::vector<Use> uses = {};
    std::vector<std::unique_ptr<Scope>> inner = {};
  };
  /// What is known of names in a scope, or in a part of one that may not run.
  struct Symbols {
    const Symbols *whole;                   ///< What this is a part of; null: a scope.
    const Symbols *outer;                   ///< The scope around.
    std::map<std::string, bool> known = {}; ///< Whether the name is undefined at first.
    std::set<std::string> stored = {};      ///< But for what the whole has stored before.

    bool knows(const std::string &name) const;
    bool stores(const std::string &name) const;
  };

  void note(Use::Kind kind, const std::string &name) { path.back()->uses.push_back({kind, name}); }
  /// Takes uses from `at` on, up to the end of a part.
  static void take(const std::vector<Use> &uses, size_t &at, Symbols &symbols);
  static void merge(std::vector<Symbols> &parts, Symbols &symbols);
  static void resolve(const Scope &scope, const Symbols *outer);

  Scope root;
  std::vector<Scope *> path;
};

} // namespace mica::rt::jinja

#endif // MICA_BACKENDS_RUNTIME_TEXT_JINJA_NAMEUSES_H
