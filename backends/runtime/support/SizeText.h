// Numbers of bytes in human-readable form.
#ifndef MICA_BACKENDS_RUNTIME_SUPPORT_SIZETEXT_H
#define MICA_BACKENDS_RUNTIME_SUPPORT_SIZETEXT_H

#include <string>

namespace mica::rt {

/// "3.21 MiB".
std::string bytesText(double bytes);

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_SUPPORT_SIZETEXT_H
