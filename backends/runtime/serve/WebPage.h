// The page at `/`: the files of web/, which are part of every program.
#ifndef MICA_BACKENDS_RUNTIME_SERVE_WEBPAGE_H
#define MICA_BACKENDS_RUNTIME_SERVE_WEBPAGE_H

#include <string_view>

namespace mica::rt::serve {

extern const std::string_view kPageMarkup, kPageScript, kPageStyle;

} // namespace mica::rt::serve

#endif // MICA_BACKENDS_RUNTIME_SERVE_WEBPAGE_H
