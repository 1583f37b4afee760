//===- ManPage.cpp - man pages of commands --------------------------------===//

#include "tools/mica/ManPage.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace mica::tool {

std::string optionText(const rt::OptionSpec &option) {
  if (option.isPositional())
    return option.value;
  return join(option.names, ", ") + (option.value.empty() ? "" : " " + option.value);
}

std::string sentence(StringRef text) {
  if (text.empty())
    return {};
  return toUpper(text.front()) + text.drop_front().str() + (text.ends_with(".") ? "" : ".");
}

std::string synopsisOf(const rt::CommandSpec &spec, StringRef command) {
  std::string text = (command + " [OPTIONS]").str();
  for (const rt::OptionSpec &option : spec.options)
    if (option.isPositional())
      text += " [" + option.value + "]";
  return text + (spec.commands.empty() ? "" : " [COMMAND]");
}

std::vector<std::pair<std::string, std::vector<const rt::OptionSpec *>>>
optionGroups(const rt::CommandSpec &spec) {
  std::vector<std::pair<std::string, std::vector<const rt::OptionSpec *>>> groups;
  auto add = [&](const std::string &name, const rt::OptionSpec &option) {
    auto found = find_if(groups, [&](const auto &group) { return group.first == name; });
    if (found == groups.end())
      found = groups.insert(groups.end(), {name, {}});
    found->second.push_back(&option);
  };
  for (const rt::OptionSpec &option : spec.options)
    if (option.isPositional())
      add("Arguments", option);
  for (const rt::OptionSpec &option : spec.options)
    if (!option.isPositional())
      add(option.group, option);
  return groups;
}

std::vector<FooterPart> footerParts(StringRef footer) {
  std::vector<FooterPart> parts;
  SmallVector<StringRef> lines;
  footer.split(lines, '\n');
  bool isNew = true, areExamples = false;
  for (StringRef line : lines) {
    bool isVerbatim = line.starts_with("  ");
    line = line.ltrim();
    // An empty line, verbatim text and the text after it start a paragraph; lines of verbatim text
    // do not.
    bool isHeading = line == "Example:" || line == "Examples:";
    areExamples = isHeading || (areExamples && (isVerbatim || line.empty()));
    if (line.empty() || isHeading) {
      isNew = true;
      continue;
    }
    if (isNew || !isVerbatim || !parts.back().isVerbatim)
      parts.push_back({isVerbatim, areExamples, line.str()});
    else
      parts.back().text += ("\n" + line).str();
    isNew = false;
  }
  return parts;
}

/// Escapes text for roff: control characters at the beginning of lines, and dashes.
static std::string escaped(StringRef text) {
  std::string out;
  bool beginsLine = true;
  for (char c : text) {
    if (beginsLine && (c == '.' || c == '\''))
      out += "\\&";
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else
      out += c;
    beginsLine = c == '\n';
  }
  return out;
}

static std::string optionsOf(const rt::CommandSpec &spec, StringRef macro) {
  std::string text;
  for (const auto &[name, options] : optionGroups(spec)) {
    text += (macro + " " + escaped(macro == ".SH" ? StringRef(name).upper() : name) + "\n").str();
    for (const rt::OptionSpec *option : options)
      text += ".TP\n.B " + escaped(optionText(*option)) + "\n" + escaped(option->help) + "\n";
  }
  return text;
}

static std::string textOf(const FooterPart &part) {
  return part.isVerbatim ? ".PP\n.nf\n.RS 4\n" + escaped(part.text) + "\n.RE\n.fi\n"
                         : ".PP\n" + escaped(part.text) + "\n";
}

/// The footer without its examples.
static std::string footerOf(const rt::CommandSpec &spec) {
  std::string text;
  for (const FooterPart &part : footerParts(spec.footer))
    if (!part.isExample)
      text += textOf(part);
  return text;
}

static std::string examplesOf(const rt::CommandSpec &spec) {
  std::string text;
  for (const FooterPart &part : footerParts(spec.footer))
    if (part.isExample)
      text += textOf(part);
  return text;
}

std::string manPage(const rt::CommandSpec &spec, StringRef title, ArrayRef<std::string> pages) {
  std::string command = spec.name;
  std::string text = ".\\\" Written by `mica reference`.\n.TH " + escaped(title.upper()) +
                     " 1 \"\" \"mica " MICA_VERSION "\" \"Mica\"\n.SH NAME\n" + escaped(title) +
                     " \\- " + escaped(rt::summaryOf(spec.description)) + "\n.SH SYNOPSIS\n.B " +
                     escaped(synopsisOf(spec, command)) + "\n.SH DESCRIPTION\n" +
                     escaped(sentence(spec.description)) + "\n" + footerOf(spec) +
                     optionsOf(spec, ".SH");
  std::string examples = examplesOf(spec);
  bool hasPages = !spec.commands.empty() && !pages.empty();
  if (!hasPages)
    for (const rt::CommandSpec &each : spec.commands)
      examples += examplesOf(each);
  if (hasPages) {
    text += ".SH COMMANDS\n";
    for (const rt::CommandSpec &each : spec.commands)
      text += ".TP\n.B " + escaped(each.name) + "\n" + escaped(each.description) + "\n";
  } else {
    for (const rt::CommandSpec &each : spec.commands)
      text += ".SH " + escaped(StringRef(each.name).upper() + " COMMAND") + "\n.B " +
              escaped(synopsisOf(each, command + " " + each.name)) + "\n.PP\n" +
              escaped(sentence(each.description)) + "\n" + footerOf(each) + optionsOf(each, ".SS");
  }
  // A heading starts a paragraph.
  if (StringRef first = examples; first.consume_front(".PP\n"))
    text += (".SH EXAMPLES\n" + first).str();
  if (!pages.empty()) {
    text += ".SH SEE ALSO\n";
    for (const std::string &page : pages)
      text += ".BR " + escaped(page) + " (1)" + (&page == &pages.back() ? "\n" : ",\n");
  }
  return text;
}

} // namespace mica::tool
