#include "backends/runtime/commands/LineEditor.h"
#include "backends/runtime/commands/InputHistory.h"
#include "backends/runtime/support/Report.h"

#include <clocale>
#include <cstdio>
#include <cstring>
#include <histedit.h>
#include <langinfo.h>
#include <unistd.h>

namespace mica::rt {

namespace {
constexpr int maxHistory = 1000;

/// The markers around pasted text in terminals with bracketed paste (xterm).
constexpr const char *pasteBegins = "\033[200~";
constexpr std::wstring_view pasteEnds = L"\033[201~";

class TerminalInput final : public ChatInput {
public:
  explicit TerminalInput(const std::optional<std::string> &file) {
    // libedit needs the locale only to compute the width of characters.
    std::setlocale(LC_CTYPE, "");
    if (std::strcmp(nl_langinfo(CODESET), "UTF-8") != 0)
      std::setlocale(LC_CTYPE, "C.UTF-8");
    screen = isatty(STDOUT_FILENO) ? stdout : stderr;
    editor = el_init("mica", stdin, screen, stderr);
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
    // Ctrl-C abandons the turn being typed; during an answer, it is a signal. libedit adopts the
    // terminal's own special characters when it first prepares the terminal, so it must do that
    // before they are changed.
    el_set(editor, EL_PREP_TERM, 1);
    el_set(editor, EL_SETTY, "-d", "intr=", nullptr);
    el_set(editor, EL_PREP_TERM, 0);
    el_set(editor, EL_ADDFN, "mica-abandon", "Discard the input", abandon);
    el_set(editor, EL_ADDFN, "mica-paste", "Insert pasted text", paste);
    el_set(editor, EL_BIND, "^C", "mica-abandon", nullptr);
    el_set(editor, EL_BIND, pasteBegins, "mica-paste", nullptr);
    el_set(editor, EL_BIND, "^I", "ed-insert", nullptr);
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
  static TerminalInput *of(EditLine *editor) {
    void *self = nullptr;
    el_get(editor, EL_CLIENTDATA, &self);
    return static_cast<TerminalInput *>(self);
  }

  static char *prompt(EditLine *editor) {
    static char first[] = "> ", more[] = ". ";
    TerminalInput *self = of(editor);
    return self && self->continued ? more : first;
  }

  static unsigned char abandon(EditLine *editor, int /*key*/) {
    const LineInfoW *line = el_wline(editor);
    int size = static_cast<int>(line->lastchar - line->buffer);
    el_cursor(editor, static_cast<int>(line->lastchar - line->cursor));
    el_wdeletestr(editor, size);
    TerminalInput *self = of(editor);
    self->abandoned = self->continued;
    return self->abandoned ? CC_NEWLINE : CC_REFRESH;
  }

  /// Inserts pasted text as a whole: its newlines do not end the turn, and nothing in it is
  /// interpreted as a key. A newline at its end is dropped.
  static unsigned char paste(EditLine *editor, int /*key*/) {
    std::wstring text;
    wchar_t letter = 0;
    while (!text.ends_with(pasteEnds) && el_wgetc(editor, &letter) == 1)
      text += letter == L'\r' ? L'\n' : letter;
    if (text.ends_with(pasteEnds))
      text.resize(text.size() - pasteEnds.size());
    if (text.ends_with(L'\n'))
      text.pop_back();
    std::erase_if(text, [](wchar_t c) {
      return (c < L' ' && c != L'\n' && c != L'\t') || (c >= 0x7f && c < 0xa0);
    });
    bool taken = text.empty() || el_winsertstr(editor, text.c_str()) == 0;
    return taken ? CC_REFRESH : CC_ERROR;
  }

  /// Enables or disables marks around pasted text, on terminals that support them (bracketed
  /// paste).
  void markPastes(bool on) {
    std::fputs(on ? "\033[?2004h" : "\033[?2004l", screen);
    std::fflush(screen);
  }

  /// A signal sent by another process acts like Ctrl-C. Ctrl-D within a turn of several lines
  /// abandons the turn; it ends the conversation only between turns.
  Result<Line> readLine(bool isContinued) override {
    if (!editor)
      return Line{Line::EndOfInput};
    continued = isContinued;
    abandoned = false;
    int size = 0;
    const char *text = nullptr;
    markPastes(true);
    bool interrupted = false;
    do {
      takeInterrupt();
      text = el_gets(editor, &size);
      interrupted = !(text && size > 0 && text[size - 1] == '\n') && takeInterrupt();
    } while (interrupted && !continued);
    abandoned |= interrupted;
    markPastes(false);
    bool ended = !text || size <= 0;
    // The line with the prompt has not been ended yet.
    if (abandoned || ended)
      std::fputs("\n", screen);
    if (abandoned || (ended && continued))
      return Line{Line::Abandoned};
    if (ended)
      return Line{Line::EndOfInput};
    Line line{Line::Whole, std::string(text, static_cast<size_t>(size))};
    while (line.text.ends_with('\n') || line.text.ends_with('\r'))
      line.text.pop_back();
    return line;
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
    reportNote(error.message + "; history will not be saved");
  }

  std::FILE *screen = nullptr;
  EditLine *editor = nullptr;
  History *history = nullptr;
  std::optional<InputHistory> kept;
  bool continued = false; ///< the line is not the first of its turn
  bool abandoned = false;
};
} // namespace

std::unique_ptr<ChatInput> openLineEditor(const std::optional<std::string> &history) {
  return std::make_unique<TerminalInput>(history);
}

} // namespace mica::rt
