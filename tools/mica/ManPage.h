//===- ManPage.h - man pages of commands ----------------------------------===//
#ifndef MICA_TOOLS_MICA_MANPAGE_H
#define MICA_TOOLS_MICA_MANPAGE_H

#include "backends/runtime/support/CommandSpec.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace mica::tool {

/// The page `title` in section 1 of the manual, in man(7) macros. Commands of `spec` are sections
/// of the page, unless they have a separate page in `pages`, which is referenced instead.
std::string manPage(const rt::CommandSpec &spec, llvm::StringRef title,
                    llvm::ArrayRef<std::string> pages);

/// The names of an option with its value: "-n, --n-predict N".
std::string optionText(const rt::OptionSpec &option);

/// `text` with a capital letter and a full stop.
std::string sentence(llvm::StringRef text);

/// The synopsis of a command: "mica compile [OPTIONS] [MODEL]".
std::string synopsisOf(const rt::CommandSpec &spec, llvm::StringRef command);

/// The options of a command by their heading in --help, positional ones first.
std::vector<std::pair<std::string, std::vector<const rt::OptionSpec *>>>
optionGroups(const rt::CommandSpec &spec);

/// The text after the options in --help, in paragraphs. Indented lines are printed as they are.
struct FooterPart {
  bool isVerbatim, isExample; ///< examples are verbatim, and follow the line "Examples:"
  std::string text;           ///< a paragraph, or lines without their indentation
};
std::vector<FooterPart> footerParts(llvm::StringRef footer);

} // namespace mica::tool

#endif // MICA_TOOLS_MICA_MANPAGE_H
