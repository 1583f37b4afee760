#include "backends/runtime/text/jinja/NameUses.h"

#include <algorithm>
#include <ranges>

namespace mica::rt::jinja {

NameUses::NameUses() : root{nullptr}, path{&root} {}

void NameUses::store(const Target &target) {
  if (!target.attribute.empty())
    load(target.name);
  else if (target.items.empty())
    note(Use::Store, target.name);
  for (const Target &item : target.items)
    store(item);
}

void NameUses::parameters(const Target &target) {
  if (target.items.empty())
    parameter(target.name);
  for (const Target &item : target.items)
    parameters(item);
}

void NameUses::enter(Block *block) {
  auto &inner = path.back()->inner;
  if (!block || inner.empty() || inner.back()->block != block)
    inner.push_back(std::make_unique<Scope>(Scope{block}));
  path.push_back(inner.back().get());
}

bool NameUses::Symbols::knows(const std::string &name) const {
  for (const Symbols *symbols = this; symbols; symbols = symbols->whole)
    if (symbols->known.contains(name))
      return true;
  for (const Symbols *symbols = outer; symbols; symbols = symbols->outer)
    if (symbols->known.contains(name))
      return true;
  return false;
}

bool NameUses::Symbols::stores(const std::string &name) const {
  for (const Symbols *symbols = this; symbols; symbols = symbols->whole)
    if (symbols->stored.contains(name))
      return true;
  return false;
}

/// A name that only some branches set is looked up outside; for others, the last branch decides.
void NameUses::merge(std::vector<Symbols> &parts, Symbols &symbols) {
  for (const Symbols &part : parts)
    for (const std::string &name : part.stored)
      if (!std::ranges::all_of(parts, [&](auto &each) { return each.stored.contains(name); }))
        symbols.known[name] = false;
  for (Symbols &part : parts | std::views::reverse) {
    symbols.known.merge(part.known);
    symbols.stored.merge(part.stored);
  }
}

void NameUses::take(const std::vector<Use> &uses, size_t &at, Symbols &symbols) {
  for (; at < uses.size(); ++at) {
    const auto &[kind, name] = uses[at];
    switch (kind) {
    case Use::Load:
      if (!symbols.knows(name))
        symbols.known[name] = false;
      break;
    case Use::Store:
      if (!symbols.stores(name))
        symbols.stored.insert(name);
      if (!symbols.knows(name))
        symbols.known[name] = true;
      break;
    case Use::Parameter:
      symbols.stored.erase(name);
      symbols.known[name] = false;
      break;
    case Use::Open: {
      std::vector<Symbols> parts(3, Symbols{&symbols, symbols.outer});
      for (Symbols &part : parts)
        take(uses, ++at, part);
      merge(parts, symbols);
      break;
    }
    case Use::Divide:
    case Use::Close:
      return;
    }
  }
}

void NameUses::resolve(const Scope &scope, const Symbols *outer) {
  Symbols symbols{nullptr, outer};
  size_t at = 0;
  take(scope.uses, at, symbols);
  for (const auto &[name, isUndefined] : symbols.known)
    if (isUndefined && scope.block)
      scope.block->hidden.push_back(name);
  for (const auto &inner : scope.inner)
    resolve(*inner, &symbols);
}

void NameUses::resolve(Block &block) {
  root.block = &block;
  resolve(root, nullptr);
}

} // namespace mica::rt::jinja
