#include "backends/runtime/support/CompletionScript.h"
#include "backends/runtime/support/CommandLine.h"
#include "backends/runtime/support/OptionValues.h"

#include <array>
#include <cctype>
#include <functional>

namespace mica::rt {

namespace {
constexpr std::array<std::string_view, 3> kShells = {"bash", "zsh", "fish"};

/// `text` in single quotes, for fish.
std::string fishQuoted(std::string_view text) {
  std::string escaped = CLI::detail::find_and_replace(std::string(text), "\\", "\\\\");
  return "'" + CLI::detail::find_and_replace(escaped, "'", "\\'") + "'";
}

/// The name of the script's completion function.
std::string functionOf(const CommandSpec &spec) {
  std::string name = "_mica_completion_of_";
  for (char c : spec.name)
    name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
}

/// Visits a command and its subcommands; `path` is "/" or, for example, "/run/chat/".
void visit(const CommandSpec &spec, const std::string &path,
           const std::function<void(const CommandSpec &, const std::string &)> &callback) {
  callback(spec, path);
  for (const CommandSpec &command : spec.commands)
    visit(command, path + command.name + "/", callback);
}

/// The kind of a value in scripts: "file", "folder", "words A B" or "any".
std::string kindOf(const OptionSpec &option) {
  switch (option.values) {
  case OptionSpec::Values::File:
    return "file";
  case OptionSpec::Values::Folder:
    return "folder";
  case OptionSpec::Values::Choice:
    return "words " + CLI::detail::join(option.choices, " ");
  case OptionSpec::Values::None:
  case OptionSpec::Values::Any:
    break;
  }
  return "any";
}

/// The branches of `case "$command $option"` that set `kind` to the kind of an option's value.
std::string kindBranches(const CommandSpec &spec) {
  std::string text;
  visit(spec, "/", [&](const CommandSpec &command, const std::string &path) {
    for (const OptionSpec &option : command.options) {
      std::string patterns;
      for (const std::string &name : option.names)
        patterns += (patterns.empty() ? "" : " | ") + shellQuoted(path + " " + name);
      if (!patterns.empty() && option.values != OptionSpec::Values::None)
        text += "    " + patterns + ") kind=" + shellQuoted(kindOf(option)) + " ;;\n";
    }
  });
  return text;
}

/// The branches of `case "$command$word/"` for words that are commands.
std::string pathPatterns(const CommandSpec &spec) {
  std::string text;
  visit(spec, "/", [&](const CommandSpec &, const std::string &path) {
    if (path != "/")
      text += (text.empty() ? "" : " | ") + shellQuoted(path);
  });
  return text.empty() ? "''" : text;
}

/// The kind of positional arguments.
std::string positionalKind(const CommandSpec &command) {
  for (const OptionSpec &option : command.options)
    if (option.isPositional() && option.values != OptionSpec::Values::Any)
      return kindOf(option);
  return "any";
}

/// Words and their descriptions.
using Words = std::vector<std::pair<std::string, std::string>>;

Words optionWords(const CommandSpec &command) {
  Words words;
  for (const OptionSpec &option : command.options)
    for (const std::string &name : option.names)
      words.emplace_back(name, summaryOf(option.help));
  return words;
}

Words commandWords(const CommandSpec &command) {
  Words words;
  for (const CommandSpec &each : command.commands)
    words.emplace_back(each.name, summaryOf(each.description));
  return words;
}

std::string header(const CommandSpec &spec, Shell shell) {
  std::string name(nameOf(shell));
  return "# Completion of " + spec.name + " for " + name + ", written by `" + spec.name +
         " completion " + name + "`.\n";
}

/// The part shared by bash and zsh: finds `command` and the `option` whose value is completed.
std::string shellBody(const CommandSpec &spec, const std::string &function) {
  return function + "_kind() { # what the option $2 of the command $1 takes; false: nothing\n" +
         "  kind=\n  case \"$1 $2\" in\n" + kindBranches(spec) + "  esac\n  [[ -n $kind ]]\n}\n\n" +
         function + "_enter() { # the command that the word $2 of the command $1 leads to\n" +
         "  case \"$1$2/\" in\n    " + pathPatterns(spec) + ") command=\"$1$2/\" ;;\n  esac\n}\n\n";
}

std::string bashScript(const CommandSpec &spec) {
  std::string function = functionOf(spec), branches;
  visit(spec, "/", [&](const CommandSpec &command, const std::string &path) {
    std::string options, commands;
    for (const auto &[word, help] : optionWords(command))
      options += (options.empty() ? "" : " ") + word;
    for (const auto &[word, help] : commandWords(command))
      commands += (commands.empty() ? "" : " ") + word;
    branches += "    " + shellQuoted(path) + ") options=" + shellQuoted(options) +
                " commands=" + shellQuoted(commands) +
                " kind=" + shellQuoted(positionalKind(command)) + " ;;\n";
  });
  return header(spec, Shell::Bash) + shellBody(spec, function) + function +
         R"(() {
  local current=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD - 1]}
  local command=/ kind= options= commands= i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; ++i)); do
    if )" +
         function +
         R"(_kind "$command" "${COMP_WORDS[i]}"; then
      # Its value follows, perhaps after a '='.
      [[ ${COMP_WORDS[i + 1]} == = ]] && ((++i))
      ((++i))
    else
      )" +
         function +
         R"(_enter "$command" "${COMP_WORDS[i]}"
    fi
  done
  if [[ $current == = ]]; then
    current=
  elif [[ $option == = ]]; then
    option=${COMP_WORDS[COMP_CWORD - 2]}
  fi
  if ! )" +
         function +
         R"(_kind "$command" "$option"; then
    case $command in
)" + branches +
         R"(    esac
    if [[ $current == -* ]]; then
      mapfile -t COMPREPLY < <(compgen -W "$options" -- "$current")
      return
    fi
    mapfile -t COMPREPLY < <(compgen -W "$commands" -- "$current")
  fi
  case $kind in
    file) compopt -o filenames 2> /dev/null; mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- "$current") ;;
    folder) compopt -o filenames 2> /dev/null; mapfile -t COMPREPLY < <(compgen -d -- "$current") ;;
    words\ *) mapfile -t COMPREPLY < <(compgen -W "${kind#words }" -- "$current") ;;
  esac
}

complete -F )" +
         function + " -- " + shellQuoted(spec.name) + "\n";
}

/// "'--weights:precision of weights'", a word of zsh's _describe.
std::string described(const Words &words) {
  std::string text;
  for (const auto &[word, help] : words)
    text += " " + shellQuoted(CLI::detail::find_and_replace(word, ":", "\\:") + ":" + help);
  return text;
}

std::string zshScript(const CommandSpec &spec) {
  std::string function = functionOf(spec), branches;
  visit(spec, "/", [&](const CommandSpec &command, const std::string &path) {
    branches += "      " + shellQuoted(path) + ")\n        options=(" +
                described(optionWords(command)) + " )\n        commands=(" +
                described(commandWords(command)) +
                " )\n        kind=" + shellQuoted(positionalKind(command)) + " ;;\n";
  });
  return "#compdef " + spec.name + "\n" + header(spec, Shell::Zsh) + "\n" +
         shellBody(spec, function) + function + R"(() {
  local command=/ kind option=${words[CURRENT - 1]} i
  local -a options commands
  for ((i = 2; i < CURRENT; ++i)); do
    if )" +
         function +
         R"(_kind "$command" "${words[i]}"; then
      ((++i))
    else
      )" +
         function +
         R"(_enter "$command" "${words[i]}"
    fi
  done
  if [[ ${words[CURRENT]} == --*=* ]]; then
    option=${words[CURRENT]%%=*}
    compset -P '*='
  fi
  if ! )" +
         function +
         R"(_kind "$command" "$option"; then
    case $command in
)" + branches +
         R"(    esac
    if [[ ${words[CURRENT]} == -* ]]; then
      _describe -o option options
      return
    fi
    ((${#commands})) && _describe command commands
  fi
  case $kind in
    file) _files ;;
    folder) _files -/ ;;
    words\ *) compadd -- ${=${kind#words }} ;;
  esac
}

# Loaded by compinit, or read by `source`.
if [[ ${funcstack[1]} == _* ]]; then
  )" + function +
         " \"$@\"\nelse\n  compdef " + function + " " + shellQuoted(spec.name) + "\nfi\n";
}

/// The switches of fish's `complete` for an option.
std::string fishSwitches(const OptionSpec &option) {
  std::string text;
  for (const std::string &name : option.names)
    text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  switch (option.values) {
  case OptionSpec::Values::None:
    break;
  case OptionSpec::Values::Any:
    text += " -x";
    break;
  case OptionSpec::Values::File:
    text += " -r -F";
    break;
  case OptionSpec::Values::Folder:
    text += " -x -a '(__fish_complete_directories)'";
    break;
  case OptionSpec::Values::Choice:
    text += " -x -a " + fishQuoted(CLI::detail::join(option.choices, " "));
    break;
  }
  return text + " -d " + fishQuoted(summaryOf(option.help));
}

std::string fishScript(const CommandSpec &spec) {
  std::string function = "_" + functionOf(spec), takesValue, completions;
  visit(spec, "/", [&](const CommandSpec &command, const std::string &path) {
    std::string complete =
        "complete -c " + fishQuoted(spec.name) + " -n " + fishQuoted(function + "_at " + path);
    for (const OptionSpec &option : command.options) {
      if (option.isPositional())
        continue;
      if (option.values != OptionSpec::Values::None)
        for (const std::string &name : option.names)
          takesValue += " " + fishQuoted(path + " " + name);
      completions += complete + fishSwitches(option) + "\n";
    }
    for (const auto &[word, help] : commandWords(command))
      completions += complete + " -a " + fishQuoted(word) + " -d " + fishQuoted(help) + "\n";
    std::string kind = positionalKind(command);
    if (kind == "file")
      completions += complete + " -F\n";
    else if (kind.starts_with("words "))
      completions += complete + " -a " + fishQuoted(kind.substr(6)) + "\n";
  });
  // bash and zsh separate patterns by bars.
  std::string paths = CLI::detail::find_and_replace(pathPatterns(spec), " | ", " ");
  return header(spec, Shell::Fish) + "function " + function +
         "_at # whether the command before the cursor is $argv[1]\n"
         "    set -l command /\n    set -l skips 0\n"
         "    for word in (commandline -opc)[2..-1]\n"
         "        if test $skips = 1\n            set skips 0\n            continue\n        end\n"
         "        if contains -- \"$command $word\"" +
         takesValue +
         "\n            set skips 1\n"
         "        else if contains -- \"$command$word/\" " +
         paths +
         "\n            set command \"$command$word/\"\n        end\n    end\n"
         "    test \"$command\" = \"$argv[1]\"\nend\n\n" +
         "complete -c " + fishQuoted(spec.name) + " -f\n" + completions;
}
} // namespace

std::optional<Shell> shellNamed(std::string_view name) {
  for (size_t i = 0; i < kShells.size(); ++i)
    if (kShells[i] == name)
      return static_cast<Shell>(i);
  return std::nullopt;
}

std::string_view nameOf(Shell shell) { return kShells[static_cast<size_t>(shell)]; }

std::string completionScript(const CommandSpec &spec, Shell shell) {
  switch (shell) {
  case Shell::Bash:
    return bashScript(spec);
  case Shell::Zsh:
    return zshScript(spec);
  case Shell::Fish:
    return fishScript(spec);
  }
  return {};
}

CLI::App *addCompletionCommand(CLI::App &app, std::string &shell) {
  CLI::App *command = app.add_subcommand(
      "completion", "Print a script that completes options and values in a shell");
  std::vector<std::string> names(kShells.begin(), kShells.end());
  command->add_option("SHELL", shell, "The shell")->required()->check(oneOf(names));
  const std::string &name = app.get_name();
  command->footer("Example:\n  source <(" + name + " completion bash)\n  " + name +
                  " completion fish | source");
  return command;
}

} // namespace mica::rt
