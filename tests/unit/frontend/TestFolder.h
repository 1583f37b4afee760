//===- TestFolder.h - folders and files made for a test ---------*- C++ -*-===//
#ifndef MICA_TESTS_UNIT_FRONTEND_TESTFOLDER_H
#define MICA_TESTS_UNIT_FRONTEND_TESTFOLDER_H

#include "llvm/Support/Error.h"

#include <gmock/gmock.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

namespace mica::test {

/// A temporary folder that is removed with the object.
class TestFolder {
public:
  TestFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "mica-test-XXXXXX").string();
    root = ::mkdtemp(pattern.data());
  }
  ~TestFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(root, ignored);
  }
  TestFolder(const TestFolder &) = delete;

  std::string path(const std::string &name = "") const {
    return name.empty() ? root.string() : (root / name).string();
  }
  std::string write(const std::string &name, const std::string &content) const {
    std::filesystem::create_directories((root / name).parent_path());
    std::ofstream(root / name, std::ios::binary) << content;
    return path(name);
  }

private:
  std::filesystem::path root;
};

/// A tensor in a file: its header entry is built from the fields, valid or not.
struct Tensor {
  std::string name;
  std::vector<int64_t> shape;
  std::string type = "F32";
  std::string data = ""; ///< zeros of the right size if empty
};

inline size_t widthOf(const std::string &type) {
  return type == "F32" || type == "I32"   ? 4
         : type == "F64" || type == "I64" ? 8
         : type == "U8"                   ? 1
                                          : 2;
}

inline std::string lengthPrefixed(const std::string &header, const std::string &data) {
  uint64_t length = header.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes + header + data;
}

/// The bytes of a safetensors file with `tensors`.
inline std::string safetensors(const std::vector<Tensor> &tensors) {
  std::string header = "{\"__metadata__\":{\"format\":\"pt\"}", data;
  for (const Tensor &tensor : tensors) {
    size_t count =
        std::accumulate(tensor.shape.begin(), tensor.shape.end(), int64_t(1), std::multiplies<>());
    std::string bytes =
        tensor.data.empty() ? std::string(count * widthOf(tensor.type), '\0') : tensor.data;
    std::string shape;
    for (int64_t size : tensor.shape)
      shape += (shape.empty() ? "" : ",") + std::to_string(size);
    header += ",\"" + tensor.name + "\":{\"dtype\":\"" + tensor.type + "\",\"shape\":[" + shape +
              "],\"data_offsets\":[" + std::to_string(data.size()) + "," +
              std::to_string(data.size() + bytes.size()) + "]}";
    data += bytes;
  }
  return lengthPrefixed(header + "}", data);
}

/// The message of an error, which must be one line.
inline std::string messageOf(llvm::Error error) {
  std::string message = llvm::toString(std::move(error));
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  return message;
}

/// The message of a failure; empty for a success.
template <typename T> std::string messageOf(llvm::Expected<T> value) {
  return value ? std::string() : messageOf(value.takeError());
}

} // namespace mica::test

#endif // MICA_TESTS_UNIT_FRONTEND_TESTFOLDER_H
