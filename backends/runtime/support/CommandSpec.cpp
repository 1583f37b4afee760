#include "backends/runtime/support/CommandSpec.h"

#include <algorithm>
#include <utility>

namespace mica::rt {

namespace {
/// CLI11 appends the allowed values to the type: "FLOAT:from 0 to 1".
std::pair<std::string, std::string> typeAndValues(const CLI::Option &option) {
  std::string all = option.get_type_name();
  size_t colon = std::min(all.find(':'), all.size());
  return {all.substr(0, colon), all.substr(std::min(colon + 1, all.size()))};
}

std::string placeholderOf(const CLI::Option &option) {
  if (option.get_type_size() == 0)
    return {};
  std::string type = typeAndValues(option).first;
  return type == "UINT" || type == "INT" ? "N" : type == "FLOAT" ? "X" : type;
}

std::vector<std::string> choicesOf(const CLI::Option &option) {
  std::string values = typeAndValues(option).second;
  return values.starts_with('{') ? CLI::detail::split(values.substr(1, values.find('}') - 1), ',')
                                 : std::vector<std::string>();
}

std::string helpOf(const CLI::Option &option) {
  std::string text = option.get_description(), values = typeAndValues(option).second;
  if (values.starts_with('{'))
    text += "; one of " + CLI::detail::join(choicesOf(option), ", ");
  else if (!values.empty())
    text += "; " + values;
  if (!option.get_default_str().empty())
    text += " (default: " + option.get_default_str() + ")";
  for (const CLI::Option *needed : option.get_needs())
    text += "; needs " + needed->get_name();
  return text;
}

/// The kind of value denoted by a placeholder in --help.
OptionSpec::Values valuesNamed(std::string_view name) {
  if (name == "DIR")
    return OptionSpec::Values::Folder;
  for (std::string_view file : {"FILE", "MODEL", "PROGRAM"})
    if (name.starts_with(file))
      return OptionSpec::Values::File;
  return OptionSpec::Values::Any;
}
} // namespace

OptionSpec describeOption(const CLI::Option &option) {
  OptionSpec spec;
  for (const std::string &name : option.get_snames())
    spec.names.push_back("-" + name);
  for (const std::string &name : option.get_lnames())
    spec.names.push_back("--" + name);
  spec.value =
      option.get_positional() && spec.names.empty() ? option.get_name(true) : placeholderOf(option);
  spec.choices = choicesOf(option);
  spec.values = !spec.choices.empty() ? OptionSpec::Values::Choice
                : spec.value.empty()  ? OptionSpec::Values::None
                                      : valuesNamed(spec.value);
  spec.help = helpOf(option);
  spec.group = option.get_group();
  return spec;
}

CommandSpec describeCommand(const CLI::App &app) {
  CommandSpec spec{app.get_name(), app.get_description(), app.get_footer(), {}, {}};
  for (const CLI::Option *option : app.get_options())
    if (!option->get_group().empty())
      spec.options.push_back(describeOption(*option));
  for (const CLI::App *command : app.get_subcommands([](const CLI::App *) { return true; }))
    if (!command->get_group().empty())
      spec.commands.push_back(describeCommand(*command));
  return spec;
}

std::string summaryOf(std::string_view help) {
  return std::string(help.substr(0, std::min(help.find_first_of(";:("), help.size())));
}

} // namespace mica::rt
