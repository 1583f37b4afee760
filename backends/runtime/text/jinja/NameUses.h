// Determines which names are local to a block; Jinja2 does so before it runs a template.
#ifndef MICA_BACKENDS_RUNTIME_TEXT_JINJA_NAMEUSES_H
#define MICA_BACKENDS_RUNTIME_TEXT_JINJA_NAMEUSES_H

#include "backends/runtime/text/jinja/Ast.h"

#include <map>
#include <set>

namespace mica::rt::jinja {

/// Records every use of a name during parsing. At the end, it returns the names of each block that
/// are undefined until the block sets them, even if the conversation defines them: those that are
/// set first on all paths, and that no enclosing block uses.
class NameUses {
public:
  NameUses();
  void load(const std::string &name) { note(Use::Load, name); }
  void store(const Target &target);
  void parameter(const std::string &name) { note(Use::Parameter, name); }
  void parameters(const Target &target);
  /// A block with its own scope; when entered again, it continues with the earlier state.
  /// Null: an expression with such a scope.
  void enter(Block *block);
  void leave() { path.pop_back(); }
  /// Three branches of which at most one runs: open, divide, divide, close.
  void open() { note(Use::Open, {}); }
  void divide() { note(Use::Divide, {}); }
  void close() { note(Use::Close, {}); }

  /// Writes `hidden` of all blocks; `root` is that of the whole template.
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
  /// The uses of names in a scope, or in a branch of one.
  struct Symbols {
    const Symbols *whole;                   ///< the scope or branch of which this is a branch;
                                            ///< null: this is a scope
    const Symbols *outer;                   ///< the enclosing scope
    std::map<std::string, bool> known = {}; ///< whether the name is undefined at the start
    std::set<std::string> stored = {};      ///< names that are set, except those that `whole` has
                                            ///< set before

    bool knows(const std::string &name) const;
    bool stores(const std::string &name) const;
  };

  void note(Use::Kind kind, const std::string &name) { path.back()->uses.push_back({kind, name}); }
  /// Processes the uses from `at` on, up to the end of a branch.
  static void take(const std::vector<Use> &uses, size_t &at, Symbols &symbols);
  static void merge(std::vector<Symbols> &parts, Symbols &symbols);
  static void resolve(const Scope &scope, const Symbols *outer);

  Scope root;
  std::vector<Scope *> path;
};

} // namespace mica::rt::jinja

#endif // MICA_BACKENDS_RUNTIME_TEXT_JINJA_NAMEUSES_H
