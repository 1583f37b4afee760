// A terminal with line editing and history, by libedit.
#pragma once

#include "backends/cpu/runtime/ChatInput.h"

namespace mica::rt {

/// Stdin must be a terminal. The history lives as long as the program: nothing is written anywhere.
std::unique_ptr<ChatInput> openLineEditor();

} // namespace mica::rt
