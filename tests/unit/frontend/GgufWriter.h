//===- GgufWriter.h - GGUF files made for a test ----------------*- C++ -*-===//
#ifndef MICA_TESTS_UNIT_FRONTEND_GGUFWRITER_H
#define MICA_TESTS_UNIT_FRONTEND_GGUFWRITER_H

#include "frontend/formats/gguf/GgufFile.h"

#include <cstring>
#include <string>
#include <vector>

namespace mica::test {

/// Builds the bytes of a file, valid or not: every part can be replaced before `bytes`.
class GgufWriter {
public:
  /// The number `value` as stored in a file.
  template <typename T> static std::string raw(T value) {
    return std::string(reinterpret_cast<const char *>(&value), sizeof value);
  }
  static std::string raw(const std::string &text) { return raw<uint64_t>(text.size()) + text; }
  static std::string raw(const char *text) { return raw(std::string(text)); }
  static std::string array(GgufKind element, uint64_t count, const std::string &elements) {
    return raw<uint32_t>(static_cast<uint32_t>(element)) + raw<uint64_t>(count) + elements;
  }

  GgufWriter &value(const std::string &key, GgufKind kind, const std::string &bytes) {
    metadata += raw(key) + raw<uint32_t>(static_cast<uint32_t>(kind)) + bytes;
    ++keys;
    return *this;
  }
  GgufWriter &u32(const std::string &key, uint32_t number) {
    return value(key, GgufKind::U32, raw(number));
  }
  GgufWriter &f32(const std::string &key, float number) {
    return value(key, GgufKind::F32, raw(number));
  }
  GgufWriter &boolean(const std::string &key, bool flag) {
    return value(key, GgufKind::Bool, raw<uint8_t>(flag));
  }
  GgufWriter &string(const std::string &key, const std::string &text) {
    return value(key, GgufKind::String, raw(text));
  }
  GgufWriter &strings(const std::string &key, const std::vector<std::string> &list) {
    std::string elements;
    for (const std::string &text : list)
      elements += raw(text);
    return value(key, GgufKind::Array, array(GgufKind::String, list.size(), elements));
  }
  template <typename T>
  GgufWriter &list(const std::string &key, GgufKind element, const std::vector<T> &list) {
    std::string elements(reinterpret_cast<const char *>(list.data()), list.size() * sizeof(T));
    return value(key, GgufKind::Array, array(element, list.size(), elements));
  }

  /// Appends a tensor with a row-major shape.
  GgufWriter &tensor(const std::string &name, std::vector<int64_t> shape, const std::string &bytes,
                     uint32_t type = 0) {
    data.resize((data.size() + alignment - 1) / alignment * alignment);
    std::vector<uint64_t> extents(shape.rbegin(), shape.rend());
    entry(name, extents, type, data.size());
    data += bytes;
    return *this;
  }
  /// Only the entry of a tensor, with extents in the file's order.
  GgufWriter &entry(const std::string &name, const std::vector<uint64_t> &extents, uint32_t type,
                    uint64_t offset) {
    entries += raw(name) + raw<uint32_t>(extents.size());
    for (uint64_t extent : extents)
      entries += raw(extent);
    entries += raw(type) + raw(offset);
    ++tensors;
    return *this;
  }
  GgufWriter &floats(const std::string &name, std::vector<int64_t> shape,
                     const std::vector<float> &values) {
    return tensor(
        name, std::move(shape),
        std::string(reinterpret_cast<const char *>(values.data()), values.size() * sizeof(float)));
  }

  std::string header() const {
    return magic + raw(version) + raw(tensors) + raw(keys) + metadata + entries;
  }
  std::string bytes() const {
    std::string all = header();
    all.resize((all.size() + alignment - 1) / alignment * alignment);
    return all + data;
  }

  std::string magic = "GGUF", metadata, entries, data;
  uint32_t version = 3;
  uint64_t keys = 0, tensors = 0, alignment = 32;
};

} // namespace mica::test

#endif // MICA_TESTS_UNIT_FRONTEND_GGUFWRITER_H
