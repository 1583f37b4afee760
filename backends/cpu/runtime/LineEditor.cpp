#include "backends/cpu/runtime/LineEditor.h"
#include "backends/cpu/runtime/Report.h"
#include "backends/cpu/runtime/TurnHistory.h"

#include <clocale>
#include <cstdio>
#include <cstring>
#include <histedit.h>
#include <langinfo.h>
#include <unistd.h>

namespace mica::rt {

namespace {
constexpr int maxHistory = 1000;

class TerminalInput final : public ChatInput {
public:
  explicit TerminalInput(const std::optional<std::string> &file) {
    // libedit counts columns of characters; nothing else of the locale is wanted.
    std::setlocale(LC_CTYPE, "");
    if (std::strcmp(nl_langinfo(CODESET), "UTF-8") != 0)
      std::setlocale(LC_CTYPE, "C.UTF-8");
    editor = el_init("mica", stdin, isatty(STDOUT_FILENO) ? stdout : stderr, stderr);
    history = history_init();
    HistEvent event;
    if (history)
      ::history(history, &event, H_SETSIZE, maxHistory);
    if (!editor)
      return;
    el_set(editor, EL_CLIENTDATA, this);
    el_set(editor, EL_PROMPT, prompt);
    el_set(editor, EL_EDITOR, "emacs");
    el_set(editor, EL_HIST, ::history, history);
    // Ctrl-C clears the line that is being written; while an answer is, it is a signal. The first
    // time that libedit takes the terminal over it adopts the terminal's own characters, so what is
    // set before that is lost.
    el_set(editor, EL_PREP_TERM, 1);
    el_set(editor, EL_SETTY, "-d", "intr=", nullptr);
    el_set(editor, EL_PREP_TERM, 0);
    el_set(editor, EL_BIND, "^C", "em-kill-line", nullptr);
    el_set(editor, EL_BIND, "^R", "em-inc-search-prev", nullptr);
    el_source(editor, nullptr);
    if (file)
      recall(*file);
  }

  ~TerminalInput() override {
    if (history)
      history_end(history);
    if (editor)
      el_end(editor);
  }

  bool interactive() const override { return true; }

private:
  static char *prompt(EditLine *editor) {
    static char first[] = "> ", more[] = ". ";
    void *self = nullptr;
    el_get(editor, EL_CLIENTDATA, &self);
    return self && static_cast<TerminalInput *>(self)->continued ? more : first;
  }

  /// Without its newline; nothing at the end. A signal from elsewhere clears the line as Ctrl-C
  /// does.
  Result<std::optional<std::string>> readLine(bool isContinued) override {
    continued = isContinued;
    int size = 0;
    const char *text = nullptr;
    do {
      takeInterrupt();
      text = editor ? el_gets(editor, &size) : nullptr;
    } while (!(text && size > 0 && text[size - 1] == '\n') && takeInterrupt());
    if (!text || size <= 0)
      return std::optional<std::string>();
    std::string line(text, static_cast<size_t>(size));
    while (line.ends_with('\n') || line.ends_with('\r'))
      line.pop_back();
    return std::optional(line);
  }

  void enter(const std::string &turn) {
    HistEvent event;
    if (history)
      ::history(history, &event, H_ENTER, turn.c_str());
  }

  void recall(const std::string &file) {
    kept.emplace(file);
    Result<std::vector<std::string>> turns = kept->read(maxHistory);
    if (!turns)
      return forget(turns.error());
    for (const std::string &turn : *turns)
      enter(turn);
  }

  void remember(const std::string &turn) override {
    if (turn.find_first_not_of(" \n") == turn.npos)
      return;
    enter(turn);
    if (kept)
      if (Status written = kept->append(turn); !written)
        forget(written.error());
  }

  void forget(const Error &error) {
    kept.reset();
    reportNote(error.message + ", what is said here is not kept");
  }

  EditLine *editor = nullptr;
  History *history = nullptr;
  std::optional<TurnHistory> kept;
  bool continued = false;
};
} // namespace

std::unique_ptr<ChatInput> openLineEditor(const std::optional<std::string> &history) {
  return std::make_unique<TerminalInput>(history);
}

} // namespace mica::rt
