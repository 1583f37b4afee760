#include "frontend/formats/torch/TorchFile.h"
#include "frontend/formats/torch/TorchPickle.h"

#include "frontend/support/MappedFile.h"
#include "tests/unit/Paths.h"
#include "tests/unit/frontend/TestFolder.h"
#include "tests/unit/frontend/ZipWriter.h"

#include "llvm/ADT/StringExtras.h"

using namespace mica;
using namespace mica::test;
using testing::HasSubstr;

namespace {

/// A file written by torch.save, from the corpus of the fuzzer.
struct Saved {
  explicit Saved(const std::string &name)
      : file(llvm::cantFail(
            MappedFile::open(MICA_SOURCE_DIR "/tests/fuzz/corpus/torch-file/" + name + ".bin"))),
        tensors(readTorchFile(file.bytes(), "m.bin")) {}

  /// The tensor as "name type shape: its numbers in f32".
  std::string shownAt(size_t index) {
    const TensorInfo &tensor = (*tensors)[index];
    std::string text = tensor.name + " " + nameOf(tensor.type).str() + " " + shown(tensor.shape);
    for (uint64_t i = 0; tensor.type == StoredType::F32 && i < tensor.size; i += 4) {
      float value;
      std::memcpy(&value, file.bytes().data() + tensor.offset + i, 4);
      text += " " + std::to_string(int(value));
    }
    return text;
  }
  std::string problem() { return messageOf(std::move(tensors)); }

  MappedFile file;
  llvm::Expected<std::vector<TensorInfo>> tensors;
};

TEST(TorchFile, HasTensorsOfAllTypes) {
  Saved plain("plain");
  ASSERT_TRUE(bool(plain.tensors)) << plain.problem();
  ASSERT_EQ(plain.tensors->size(), 4u);
  EXPECT_EQ(plain.shownAt(0), "a F32 [2, 3] 0 1 2 3 4 5");
  EXPECT_EQ(plain.shownAt(1), "b BF16 [4]");
  EXPECT_EQ(plain.shownAt(2), "half F16 [5]");
  EXPECT_EQ(plain.shownAt(3), "n I64 []");
}

TEST(TorchFile, TensorsMayShareAStorage) {
  Saved shared("shared");
  ASSERT_TRUE(bool(shared.tensors)) << shared.problem();
  ASSERT_EQ(shared.tensors->size(), 4u);
  EXPECT_EQ(shared.shownAt(0), "rows F32 [3, 2] 4 5 6 7 8 9");
  EXPECT_EQ(shared.shownAt(1), "all F32 [12] 0 1 2 3 4 5 6 7 8 9 10 11");
  EXPECT_EQ(shared.shownAt(2), "again F32 [12] 0 1 2 3 4 5 6 7 8 9 10 11");
  EXPECT_EQ(shared.shownAt(3), "p F32 [2] 1 1");
}

TEST(TorchFile, ReadsStateDicts) {
  Saved module("module");
  ASSERT_TRUE(bool(module.tensors)) << module.problem();
  EXPECT_EQ(module.tensors->size(), 2u);
}

TEST(TorchFile, RejectsOtherValuesThanStateDicts) {
  EXPECT_THAT(
      Saved("evil").problem(),
      HasSubstr("m.bin: has a pickle that uses \"posix.system\", which is not part of a tensor"));
  EXPECT_THAT(Saved("nested").problem(),
              HasSubstr("has the entry \"state\", which is not a tensor"));
}

TEST(TorchFile, RefusesPicklesThatWouldTakeAllMemory) {
  auto problem = [](const std::string &text) {
    return messageOf(readTorchPickle(llvm::arrayRefFromStringRef(text), "m.bin"));
  };
  std::string name(5000, 'x');
  EXPECT_THAT(problem("\x80\x02}(X" + std::string("\x88\x13\0\0", 4) + name + "Nu."),
              HasSubstr("m.bin: has a pickle with a name of 5000 bytes"));
  EXPECT_THAT(problem("\x80\x02" + std::string((2 << 20) + 1, 'N') + "."),
              HasSubstr("creates more than 2097152 objects"));
  // Memoized values that are fetched again take memory as well.
  constexpr char memoize = '\x94';
  EXPECT_THAT(problem("\x80\x04N" + std::string((2 << 20) + 1, memoize) + "."),
              HasSubstr("has a pickle that memoizes more than 2097152 objects"));
  std::string fetched;
  for (int i = 0; i < (2 << 20); ++i)
    fetched += std::string("h\0", 2);
  EXPECT_THAT(problem("\x80\x02Nq" + std::string(1, '\0') + fetched + "."),
              HasSubstr("has a pickle that holds more than 2097152 objects"));
  std::string tensor = "ctorch._utils\n_rebuild_tensor_v2\n((X" + std::string("\7\0\0\0", 4) +
                       "storagectorch\nFloatStorage\nX" + std::string("\1\0\0\0", 4) + "0X" +
                       std::string("\3\0\0\0", 4) + "cpuK\1tQK" + std::string(1, '\0') +
                       "))\x89)tRq" + std::string(1, '\0');
  EXPECT_THAT(problem("\x80\x02}(X" + std::string("\1\0\0\0", 4) + "a" + tensor + "X" +
                      std::string("\1\0\0\0", 4) + "ah" + std::string(1, '\0') + "u."),
              HasSubstr("has the entry \"a\" twice"));
}

TEST(TorchFile, RejectsIncompleteArchives) {
  // A dictionary with t, two floats of storage 0.
  auto text = [](const std::string &words) {
    return "X" + std::string(1, char(words.size())) + std::string(3, '\0') + words;
  };
  std::string pickle = "\x80\x02}(" + text("t") + "ctorch._utils\n_rebuild_tensor_v2\n((" +
                       text("storage") + "ctorch\nFloatStorage\n" + text("0") + text("cpu") +
                       "K\2tQK" + std::string(1, '\0') + "(K\2t(K\1t\x89)tRu.";
  auto problem = [](const std::vector<ZipMember> &members) {
    return messageOf(readTorchFile(llvm::arrayRefFromStringRef(zipArchive(members)), "m.bin"));
  };
  ZipMember whole = {"m/data.pkl", pickle}, data = {"m/data/0", "12345678"};
  EXPECT_EQ(problem({whole, data}), "");
  EXPECT_EQ(problem({whole, data, {"m/byteorder", "little"}}), "");
  EXPECT_EQ(problem({whole, data, {"m/byteorder", "big"}}),
            "m.bin: comes from a big-endian machine; convert the model to safetensors");
  EXPECT_EQ(problem({data, {"data.pkl", pickle}, {"m/n/data.pkl", pickle}}),
            "m.bin: holds no pickle of tensors; download it again");
  EXPECT_EQ(problem({whole, {"m/data/1", "12345678"}}),
            "m.bin: lacks the data of tensor \"t\"; download it again");
  EXPECT_EQ(problem({whole, {"m/data/0", "1234567"}}),
            "m.bin: holds too little data for tensor \"t\"; download it again");
  ZipMember changed = whole;
  changed.crc = 1;
  EXPECT_EQ(problem({changed, data}),
            "m.bin: has a pickle that does not match its checksum; download it again");
  changed.crc = 0;
  EXPECT_EQ(problem({changed, data}), "") << "none was computed";
  data.crc = 1;
  EXPECT_EQ(problem({whole, data}), "") << "tensors are not checked";
}

TEST(TorchFile, MayHaveStrides) {
  Saved transposed("transposed");
  ASSERT_TRUE(bool(transposed.tensors)) << transposed.problem();
  const TensorInfo &t = transposed.tensors->front();
  EXPECT_EQ(shown(t.shape), "[3, 2]");
  EXPECT_EQ(shown(t.strides), "[1, 3]");
  EXPECT_EQ(t.size, 24u);
}

/// From torch before 1.6: pickles and storages, concatenated.
TEST(TorchFile, ReadsFilesOfOldTorch) {
  Saved legacy("legacy");
  ASSERT_TRUE(bool(legacy.tensors)) << legacy.problem();
  ASSERT_EQ(legacy.tensors->size(), 4u);
  EXPECT_EQ(legacy.shownAt(0), "a F32 [2, 3] 0 1 2 3 4 5");
  EXPECT_EQ(legacy.shownAt(1), "b BF16 [4]");
  EXPECT_EQ(legacy.shownAt(2), "rows F32 [3, 2] 4 5 6 7 8 9");
  EXPECT_EQ(shown((*legacy.tensors)[3].strides), "[1, 3]");
}

TEST(TorchFile, RejectsIncompleteOldFiles) {
  // The magic number and the version, then pickles: the machine, the tensors, the storages.
  const std::string head =
      "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.\x80\x02M\xe9\x03.";
  auto text = [](const std::string &words) {
    return "X" + std::string(1, char(words.size())) + std::string(3, '\0') + words;
  };
  auto machine = [&](const std::string &truth) {
    return "\x80\x02}" + text("little_endian") + truth + "s.";
  };
  auto tensors = [&](const std::string &view) {
    return "\x80\x02}(" + text("t") + "ctorch._utils\n_rebuild_tensor_v2\n((" + text("storage") +
           "ctorch\nFloatStorage\n" + text("7") + text("cpu") + "K\2" + view + "tQK" +
           std::string(1, '\0') + "(K\2t(K\1t\x89)tRu.";
  };
  auto storages = [&](const std::string &item) { return "\x80\x02](" + item + "e."; };
  std::string data = std::string("\2\0\0\0\0\0\0\0", 8) + "12345678";
  auto problem = [&](const std::string &bytes) {
    return messageOf(readTorchFile(llvm::arrayRefFromStringRef(bytes), "m.bin"));
  };
  std::string whole = head + machine("\x88") + tensors("N") + storages(text("7")) + data;
  EXPECT_EQ(problem(whole), "");
  EXPECT_EQ(problem(head + machine("\x89") + tensors("N") + storages(text("7")) + data),
            "m.bin: comes from a big-endian machine; convert the model to safetensors");
  EXPECT_EQ(problem(head.substr(1)),
            "m.bin: is not a whole zip archive (its directory is missing); "
            "download it again");
  EXPECT_EQ(problem(head.substr(0, 12)),
            "m.bin: has a pickle that is not a torch checkpoint; convert the model to safetensors");
  EXPECT_EQ(problem(head + machine("\x88") + tensors("K\1") + storages(text("7")) + data),
            "m.bin: has a truncated or invalid pickle; convert the model to safetensors")
      << "a storage within another";
  EXPECT_EQ(problem(head + machine("\x88") + "\x80\x02]."),
            "m.bin: holds something other than a dictionary of tensors; convert the model to "
            "safetensors");
  EXPECT_EQ(problem(head + machine("\x88") + tensors("N") + storages("N") + data),
            "m.bin: has a list of storages whose names are not strings; convert the model to "
            "safetensors");
  EXPECT_EQ(
      problem(head + machine("\x88") + tensors("N") + storages(text("8")) + data),
      "m.bin: has the storage \"8\", which belongs to no tensor; convert the model to safetensors");
  EXPECT_EQ(problem(head + machine("\x88") + tensors("N") + storages("")),
            "m.bin: lacks the data of tensor \"t\"; download it again");
  EXPECT_EQ(problem(whole.substr(0, whole.size() - 1)),
            "m.bin: ends within the storage \"7\"; download it again");
  std::string less = whole;
  less[whole.size() - data.size()] = 1;
  EXPECT_EQ(problem(less), "m.bin: holds too little data for tensor \"t\"; download it again");
}

TEST(TorchFile, RefusesAFileThatIsCutAnywhere) {
  for (const char *name : {"plain", "legacy"}) {
    Saved saved(name);
    llvm::ArrayRef<uint8_t> bytes = saved.file.bytes();
    for (size_t size = 0; size < bytes.size(); ++size)
      EXPECT_THAT(messageOf(readTorchFile(bytes.take_front(size), "m.bin")), HasSubstr("m.bin: "))
          << name << " " << size;
  }
}

} // namespace
