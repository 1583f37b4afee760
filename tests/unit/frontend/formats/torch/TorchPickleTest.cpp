#include "frontend/formats/torch/TorchPickle.h"

#include "tests/unit/frontend/TestFolder.h"

#include "llvm/ADT/StringExtras.h"

using namespace mica;
using namespace mica::test;

namespace {

std::string raw(uint32_t value) {
  return std::string(reinterpret_cast<const char *>(&value), sizeof value);
}

/// Instructions that create a text, a number, a tuple, a storage of floats, a tensor, a dictionary.
std::string text(const std::string &words) { return "X" + raw(words.size()) + words; }
std::string number(int32_t value) { return "J" + raw(value); }
std::string tuple(const std::vector<int32_t> &values) {
  std::string items;
  for (int32_t value : values)
    items += number(value);
  return "(" + items + "t";
}
std::string storage(int32_t elements) {
  return "(" + text("storage") + "ctorch\nFloatStorage\n" + text("0") + text("cpu") +
         number(elements) + "tQ";
}
std::string tensor(int32_t elements, int32_t first, const std::string &shape,
                   const std::string &strides) {
  return "ctorch._utils\n_rebuild_tensor_v2\n(" + storage(elements) + number(first) + shape +
         strides + "\x89)tR";
}
std::string dictionary(const std::string &entries) { return "\x80\x02}(" + entries + "u."; }

std::string problemOf(const std::string &pickle) {
  return messageOf(readTorchPickle(llvm::arrayRefFromStringRef(pickle), "m"));
}
std::string problemOfTensor(const std::string &value) {
  return problemOf(dictionary(text("t") + value));
}
std::string refused(const std::string &what) {
  return "m: " + what + "; convert the model to safetensors";
}

TEST(TorchPickle, HasTensors) {
  std::string pickle = dictionary(text("t") + tensor(8, 2, tuple({2, 3}), tuple({3, 1})));
  auto tensors = readTorchPickle(llvm::arrayRefFromStringRef(pickle), "m");
  ASSERT_TRUE(bool(tensors)) << messageOf(std::move(tensors));
  ASSERT_EQ(tensors->size(), 1u);
  const TorchTensor &only = tensors->front();
  EXPECT_EQ(only.name, "t");
  EXPECT_EQ(only.storage, "0");
  EXPECT_EQ(only.first, 2u);
  EXPECT_EQ(shown(only.shape), "[2, 3]");
}

TEST(TorchPickle, HasStrides) {
  std::string pickle = dictionary(text("t") + tensor(8, 1, tuple({2, 3}), tuple({1, 2})));
  auto tensors = readTorchPickle(llvm::arrayRefFromStringRef(pickle), "m");
  ASSERT_TRUE(bool(tensors)) << messageOf(std::move(tensors));
  EXPECT_EQ(shown(tensors->front().strides), "[1, 2]");
  EXPECT_EQ(tensors->front().span, 6u);
}

TEST(TorchPickle, RefusesNonPickles) {
  for (const std::string &pickle :
       {std::string(), std::string("X"), std::string("R."), std::string("t."), std::string("u."),
        std::string("\x85."), std::string("\x93."), std::string("Q."), std::string("b."),
        std::string("q"), std::string("h\1."), std::string("\x8a\t."), std::string("ctorch\n"),
        dictionary(text("t")), dictionary("").substr(0, 4)})
    EXPECT_EQ(problemOf(pickle), refused("has a truncated or invalid pickle")) << pickle;
  EXPECT_EQ(problemOf("i."), refused("has a pickle with the instruction 0x69, which no dictionary "
                                     "of tensors needs"));
  EXPECT_EQ(problemOf("cos\nsystem\n."),
            refused("has a pickle that uses \"os.system\", which is not part of a tensor"));
  EXPECT_EQ(problemOf("N."), refused("holds something other than a dictionary of tensors"));
  EXPECT_EQ(problemOf("."), refused("has a truncated or invalid pickle"));
}

TEST(TorchPickle, RefusesTooLargeValues) {
  EXPECT_EQ(problemOf(std::string((16 << 20) + 1, 'N')),
            refused("has a pickle of 16777217 bytes, at most 16777216 are supported"));
  EXPECT_EQ(problemOf(std::string((2 << 20) + 1, 'N')),
            refused("has a pickle that creates more than 2097152 objects"));
  EXPECT_EQ(problemOf("X" + raw(5000)), refused("has a pickle with a name of 5000 bytes"));
}

TEST(TorchPickle, RejectsInvalidStorages) {
  std::string none = refused("has a pickle with an invalid storage");
  EXPECT_EQ(problemOfTensor(storage(-1)), none);
  EXPECT_EQ(problemOf("(NNNNNtQ."), none);
  EXPECT_EQ(problemOf("(" + text("storage") + "ccollections\nOrderedDict\n" + text("0") +
                      text("cpu") + number(1) + "tQ."),
            none);
}

TEST(TorchPickle, RejectsInvalidTensors) {
  std::string one = tuple({1}), none = refused("has a pickle with an invalid tensor");
  EXPECT_EQ(problemOfTensor(tensor(1, -1, one, one)), none);
  EXPECT_EQ(problemOfTensor(tensor(1, 0, one, tuple({}))), none);
  EXPECT_EQ(problemOfTensor(tensor(1, 0, tuple({1, 1, 1, 1, 1, 1, 1, 1, 1}),
                                   tuple({1, 1, 1, 1, 1, 1, 1, 1, 1}))),
            none);
  EXPECT_EQ(problemOfTensor(tensor(1, 0, tuple({-1}), one)), none);
  EXPECT_EQ(problemOfTensor(tensor(1, 0, one, "(Nt")), none);
  EXPECT_EQ(
      problemOfTensor(tensor(1, 0, tuple({INT32_MAX, INT32_MAX, INT32_MAX}), tuple({1, 1, 1}))),
      refused("has a pickle with an impossibly large tensor"));
  EXPECT_EQ(problemOfTensor(tensor(5, 1, tuple({5}), one)),
            refused("has a pickle with a tensor beyond its storage"));
  EXPECT_EQ(problemOfTensor(tensor(1, 0, one, tuple({-1}))), none);
  EXPECT_EQ(problemOfTensor(tensor(6, 0, tuple({2, 3}), tuple({1, 3}))),
            refused("has a pickle with a tensor beyond its storage"));
  EXPECT_EQ(problemOfTensor(tensor(1, 0, tuple({5}), tuple({0}))),
            refused("has a pickle with a tensor beyond its storage"))
      << "one element in five places";
  EXPECT_EQ(problemOf("ccollections\nOrderedDict\n(NtR."),
            refused("has a pickle that makes more of \"collections.OrderedDict\" than a tensor"));
}

TEST(TorchPickle, RefusesOtherDictionaries) {
  std::string one = tensor(1, 0, tuple({}), tuple({}));
  EXPECT_EQ(problemOf(dictionary("N" + one)), refused("has a dictionary whose keys are not names"));
  EXPECT_EQ(problemOf(dictionary(text("a") + "N")),
            refused("has the entry \"a\", which is not a tensor"));
  EXPECT_EQ(problemOf(dictionary(text("a") + one + text("a") + one)),
            refused("has the entry \"a\" twice"));
}

} // namespace
