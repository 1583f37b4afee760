#include "backends/runtime/text/base/Utf8.h"

namespace mica::rt::tokenizer {
namespace {

constexpr std::string_view replacement = "\xEF\xBF\xBD";

struct LeadByte {
  uint32_t length;         // of the whole character; 0: no character starts so
  uint8_t lowest, highest; // bounds of the second byte (Unicode 15, table 3-7)
};

LeadByte classify(uint8_t lead) {
  if (lead < 0x80)
    return {1, 0, 0};
  if (lead < 0xC2 || lead > 0xF4)
    return {0, 0, 0};
  if (lead < 0xE0)
    return {2, 0x80, 0xBF};
  if (lead < 0xF0)
    return {3, static_cast<uint8_t>(lead == 0xE0 ? 0xA0 : 0x80),
            static_cast<uint8_t>(lead == 0xED ? 0x9F : 0xBF)};
  return {4, static_cast<uint8_t>(lead == 0xF0 ? 0x90 : 0x80),
          static_cast<uint8_t>(lead == 0xF4 ? 0x8F : 0xBF)};
}

void appendReplacements(std::string &out, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i)
    out += replacement;
}

} // namespace

Utf8Prefix scanUtf8(std::string_view text) {
  LeadByte lead = classify(static_cast<uint8_t>(text[0]));
  if (lead.length == 0)
    return {Utf8Prefix::Invalid, 1};
  uint8_t lowest = lead.lowest, highest = lead.highest;
  for (uint32_t i = 1; i < lead.length; ++i) {
    if (i == text.size())
      return {Utf8Prefix::Incomplete, i};
    auto byte = static_cast<uint8_t>(text[i]);
    if (byte < lowest || byte > highest)
      return {Utf8Prefix::Invalid, i};
    lowest = 0x80;
    highest = 0xBF;
  }
  return {Utf8Prefix::Valid, lead.length};
}

bool isUtf8(std::string_view text) {
  while (!text.empty()) {
    Utf8Prefix prefix = scanUtf8(text);
    if (prefix.state != Utf8Prefix::Valid)
      return false;
    text.remove_prefix(prefix.length);
  }
  return true;
}

std::string repairUtf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  Utf8Stream stream;
  stream.push(text, out, /*perByte=*/false);
  stream.flush(out, /*perByte=*/false);
  return out;
}

uint32_t decodeChar(std::string_view text) {
  auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<uint8_t>(text[i])); };
  switch (charLength(text[0])) {
  case 1:
    return byte(0);
  case 2:
    return (byte(0) & 0x1F) << 6 | (byte(1) & 0x3F);
  case 3:
    return (byte(0) & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F);
  default:
    return (byte(0) & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 |
           (byte(3) & 0x3F);
  }
}

void appendChar(std::string &text, uint32_t codePoint) {
  if (codePoint < 0x80) {
    text += static_cast<char>(codePoint);
  } else if (codePoint < 0x800) {
    text += static_cast<char>(0xC0 | codePoint >> 6);
    text += static_cast<char>(0x80 | (codePoint & 0x3F));
  } else if (codePoint > 0x10FFFF || (codePoint >= 0xD800 && codePoint < 0xE000)) {
    text += replacement;
  } else if (codePoint < 0x10000) {
    text += static_cast<char>(0xE0 | codePoint >> 12);
    text += static_cast<char>(0x80 | (codePoint >> 6 & 0x3F));
    text += static_cast<char>(0x80 | (codePoint & 0x3F));
  } else {
    text += static_cast<char>(0xF0 | codePoint >> 18);
    text += static_cast<char>(0x80 | (codePoint >> 12 & 0x3F));
    text += static_cast<char>(0x80 | (codePoint >> 6 & 0x3F));
    text += static_cast<char>(0x80 | (codePoint & 0x3F));
  }
}

void Utf8Stream::push(std::string_view bytes, std::string &out, bool perByte) {
  std::string joined;
  if (!pending.empty()) {
    joined = std::move(pending);
    pending.clear();
    joined += bytes;
    bytes = joined;
  }
  size_t begin = 0, end = 0; // well-formed text that is not yet copied
  while (end < bytes.size()) {
    Utf8Prefix prefix = scanUtf8(bytes.substr(end));
    if (prefix.state == Utf8Prefix::Valid) {
      end += prefix.length;
      continue;
    }
    out += bytes.substr(begin, end - begin);
    if (prefix.state == Utf8Prefix::Incomplete) {
      pending = bytes.substr(end);
      return;
    }
    appendReplacements(out, perByte ? prefix.length : 1);
    begin = end = end + prefix.length;
  }
  out += bytes.substr(begin);
}

void Utf8Stream::flush(std::string &out, bool perByte) {
  if (!pending.empty())
    appendReplacements(out, perByte ? static_cast<uint32_t>(pending.size()) : 1);
  pending.clear();
}

} // namespace mica::rt::tokenizer
