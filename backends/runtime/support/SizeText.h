// Sizes and counts in human-readable form.
#ifndef MICA_BACKENDS_RUNTIME_SUPPORT_SIZETEXT_H
#define MICA_BACKENDS_RUNTIME_SUPPORT_SIZETEXT_H

#include <cstdint>
#include <string>
#include <string_view>

namespace mica::rt {

/// "1 token", "2 tokens".
std::string countText(int64_t count, std::string_view noun);

/// "3.21 MiB".
std::string bytesText(double bytes);

/// "4.50 bits per weight"; empty if the number of weights is 0, which means that it is unknown.
std::string bitsPerWeightText(double bytes, double weights);

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_SUPPORT_SIZETEXT_H
