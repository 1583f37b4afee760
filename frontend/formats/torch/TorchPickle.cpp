#include "frontend/formats/torch/TorchPickle.h"

#include "frontend/support/InputError.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

#include <memory>
#include <optional>

namespace mica {
namespace {

constexpr llvm::StringLiteral unpickled = "convert the model to safetensors";
constexpr size_t maxRank = 8, maxPickleBytes = 16 << 20, maxObjects = 2 << 20, maxTextBytes = 4096;

/// The opcodes, with Python's names.
enum Opcode : uint8_t {
  Mark = '(',
  Stop = '.',
  BinInt = 'J',
  BinInt1 = 'K',
  BinInt2 = 'M',
  None = 'N',
  BinPersId = 'Q',
  Reduce = 'R',
  BinUnicode = 'X',
  Append = 'a',
  Build = 'b',
  Global = 'c',
  Appends = 'e',
  BinGet = 'h',
  LongBinGet = 'j',
  BinPut = 'q',
  LongBinPut = 'r',
  SetItem = 's',
  Tuple = 't',
  SetItems = 'u',
  EmptyDict = '}',
  EmptyList = ']',
  EmptyTuple = ')',
  Proto = 0x80,
  Tuple1 = 0x85,
  Tuple2 = 0x86,
  Tuple3 = 0x87,
  NewTrue = 0x88,
  NewFalse = 0x89,
  Long1 = 0x8a,
  ShortBinUnicode = 0x8c,
  StackGlobal = 0x93,
  Memoize = 0x94,
  Frame = 0x95,
};

enum class Kind { None, Bool, Integer, Text, Name, List, Dict, Storage, Tensor, Mark };

/// An object created by the machine. Lists and tuples are equivalent; dictionaries are stored as
/// alternating keys and values.
struct Object {
  Kind kind = Kind::None;
  int64_t number = 0;                ///< of integers and booleans; number of elements of storages
  llvm::StringRef text = {};         ///< of texts and names; file name of storages
  StoredType type = StoredType::F32; ///< of storages
  std::vector<uint32_t> items = {};  ///< of lists and dictionaries
  std::unique_ptr<TorchTensor> tensor = nullptr;
};

class Machine {
public:
  Machine(llvm::ArrayRef<uint8_t> pickle, llvm::StringRef path) : rest(pickle), path(path) {
    stack.reserve(64);
  }

  /// Runs a pickle to its end and returns its object; `unread` is the data after it.
  llvm::Expected<const Object *> run();
  llvm::Expected<std::vector<TorchTensor>> tensorsOf(const Object &dict);
  llvm::Expected<std::vector<llvm::StringRef>> textsOf(const Object &list) const;
  /// Whether the entry `key` is true or absent.
  bool isTrue(const Object &dict, llvm::StringRef key) const;
  llvm::ArrayRef<uint8_t> unread() const { return rest; }

private:
  llvm::Error wrong(const llvm::Twine &what) const { return inputError(path, what, unpickled); }
  llvm::Error cut() const { return wrong("has a truncated or invalid pickle"); }

  llvm::Error step(uint8_t opcode);
  llvm::Error makeGlobal(llvm::StringRef module, llvm::StringRef name);
  llvm::Error reduce();
  llvm::Error makeStorage();
  llvm::Error rebuildTensor(llvm::ArrayRef<uint32_t> arguments);
  llvm::Error addItems(bool isDict, bool single);
  llvm::Error makeTuple(std::optional<size_t> size);

  llvm::Error push(Object object) {
    if (objects.size() == maxObjects)
      return wrong("has a pickle that creates more than " + llvm::Twine(maxObjects) + " objects");
    stack.push_back(objects.size());
    objects.push_back(std::move(object));
    return llvm::Error::success();
  }
  llvm::Error pushNumber(int64_t number) { return push({.kind = Kind::Integer, .number = number}); }
  llvm::Error pushText(llvm::StringRef text) { return push({.kind = Kind::Text, .text = text}); }
  Object *top() { return stack.empty() ? nullptr : &objects[stack.back()]; }
  /// The integer of an object.
  std::optional<int64_t> integer(uint32_t object) const {
    return objects[object].kind == Kind::Integer ? std::optional(objects[object].number)
                                                 : std::nullopt;
  }
  std::optional<llvm::StringRef> take(uint64_t size) {
    if (size > rest.size())
      return std::nullopt;
    llvm::StringRef text = llvm::toStringRef(rest.take_front(size));
    rest = rest.drop_front(size);
    return text;
  }
  /// An unsigned number of `size` bytes.
  std::optional<uint64_t> takeNumber(uint64_t size) {
    auto text = take(size);
    if (!text)
      return std::nullopt;
    uint64_t number = 0;
    for (size_t i = 0; i < size; ++i)
      number |= uint64_t(uint8_t((*text)[i])) << 8 * i;
    return number;
  }
  std::optional<llvm::StringRef> takeLine() {
    llvm::StringRef text = llvm::toStringRef(rest);
    size_t end = text.find('\n');
    if (end == llvm::StringRef::npos)
      return std::nullopt;
    rest = rest.drop_front(end + 1);
    return text.take_front(end);
  }
  /// Removes and returns the objects above the last mark, and the mark.
  std::optional<std::vector<uint32_t>> popToMark() {
    for (size_t i = stack.size(); i-- > 0;)
      if (objects[stack[i]].kind == Kind::Mark) {
        std::vector<uint32_t> items(stack.begin() + i + 1, stack.end());
        stack.resize(i);
        return items;
      }
    return std::nullopt;
  }

  llvm::ArrayRef<uint8_t> rest;
  llvm::StringRef path;
  std::vector<Object> objects;
  std::vector<uint32_t> stack;
  llvm::DenseMap<uint64_t, uint32_t> memo;
};

/// The globals that a dictionary of tensors needs.
constexpr std::pair<llvm::StringLiteral, StoredType> storages[] = {
    {"torch.FloatStorage", StoredType::F32},     {"torch.HalfStorage", StoredType::F16},
    {"torch.BFloat16Storage", StoredType::BF16}, {"torch.DoubleStorage", StoredType::F64},
    {"torch.LongStorage", StoredType::I64},      {"torch.IntStorage", StoredType::I32},
    {"torch.ShortStorage", StoredType::I16},     {"torch.CharStorage", StoredType::I8},
    {"torch.ByteStorage", StoredType::U8},       {"torch.BoolStorage", StoredType::Bool}};
constexpr llvm::StringLiteral orderedDict = "collections.OrderedDict",
                              rebuild = "torch._utils._rebuild_tensor_v2",
                              rebuildParameter = "torch._utils._rebuild_parameter";

std::optional<StoredType> storageNamed(llvm::StringRef name) {
  for (auto [known, type] : storages)
    if (known == name)
      return type;
  return std::nullopt;
}

llvm::Error Machine::makeGlobal(llvm::StringRef module, llvm::StringRef name) {
  std::string full = (module + "." + name).str();
  for (llvm::StringRef known :
       {llvm::StringRef(orderedDict), llvm::StringRef(rebuild), llvm::StringRef(rebuildParameter)})
    if (known == full)
      return push({.kind = Kind::Name, .text = known});
  for (const auto &storage : storages)
    if (storage.first == full)
      return push({.kind = Kind::Name, .text = storage.first});
  return wrong("has a pickle that uses " + inQuotes(full) + ", which is not part of a tensor");
}

/// ("storage", type, file, device, elements); before 1.6 followed by None, or by something else if
/// it is a view of another storage.
llvm::Error Machine::makeStorage() {
  Object *id = top();
  bool isOld = id && id->kind == Kind::List && id->items.size() == 6 &&
               objects[id->items.back()].kind == Kind::None;
  if (!id || id->kind != Kind::List || (id->items.size() != 5 && !isOld))
    return cut();
  std::vector<uint32_t> parts = id->items;
  const Object &type = objects[parts[1]], &file = objects[parts[2]];
  auto stored = type.kind == Kind::Name ? storageNamed(type.text) : std::nullopt;
  auto count = integer(parts[4]);
  if (objects[parts[0]].text != "storage" || !stored || file.kind != Kind::Text || !count ||
      *count < 0)
    return wrong("has a pickle with an invalid storage");
  Object storage{.kind = Kind::Storage, .number = *count, .text = file.text, .type = *stored};
  stack.pop_back();
  return push(std::move(storage));
}

/// (storage, first element, shape, strides, ...).
llvm::Error Machine::rebuildTensor(llvm::ArrayRef<uint32_t> arguments) {
  if (arguments.size() < 4)
    return cut();
  const Object &storage = objects[arguments[0]], &shape = objects[arguments[2]],
               &strides = objects[arguments[3]];
  auto first = integer(arguments[1]);
  if (storage.kind != Kind::Storage || shape.kind != Kind::List || strides.kind != Kind::List ||
      !first || *first < 0 || shape.items.size() != strides.items.size() ||
      shape.items.size() > maxRank)
    return wrong("has a pickle with an invalid tensor");
  TorchTensor tensor;
  tensor.storage = storage.text;
  tensor.type = storage.type;
  tensor.first = static_cast<uint64_t>(*first);
  int64_t elements = 1, last = 0;
  bool inOrder = true;
  for (size_t i = shape.items.size(); i-- > 0;) {
    auto extent = integer(shape.items[i]), stride = integer(strides.items[i]);
    if (!extent || *extent < 0 || !stride || *stride < 0)
      return wrong("has a pickle with an invalid tensor");
    inOrder &= *extent == 1 || *stride == elements;
    tensor.shape.insert(tensor.shape.begin(), *extent);
    tensor.strides.insert(tensor.strides.begin(), *stride);
    int64_t way;
    if (llvm::MulOverflow(elements, *extent, elements) ||
        llvm::MulOverflow(std::max<int64_t>(*extent - 1, 0), *stride, way) ||
        llvm::AddOverflow(last, way, last))
      return wrong("has a pickle with an impossibly large tensor");
  }
  // If several positions shared elements, there would be more elements than stored.
  int64_t span = elements == 0 ? 0 : last + 1;
  if (elements > storage.number || span > storage.number || *first > storage.number - span)
    return wrong("has a pickle with a tensor beyond its storage");
  tensor.span = static_cast<uint64_t>(span);
  if (inOrder || elements == 0)
    tensor.strides.clear();
  Object object;
  object.kind = Kind::Tensor;
  object.tensor = std::make_unique<TorchTensor>(std::move(tensor));
  return push(std::move(object));
}

llvm::Error Machine::reduce() {
  if (stack.size() < 2 || objects[stack.back()].kind != Kind::List ||
      objects[stack[stack.size() - 2]].kind != Kind::Name)
    return cut();
  llvm::ArrayRef<uint32_t> arguments = objects[stack.back()].items;
  llvm::StringRef name = objects[stack[stack.size() - 2]].text;
  stack.resize(stack.size() - 2);
  if (name == rebuild)
    return rebuildTensor(arguments);
  if (name == rebuildParameter && !arguments.empty() &&
      objects[arguments[0]].kind == Kind::Tensor) {
    stack.push_back(arguments[0]);
    return llvm::Error::success();
  }
  Object dict;
  dict.kind = Kind::Dict;
  if (name == orderedDict && arguments.empty())
    return push(std::move(dict));
  return wrong("has a pickle that makes more of " + inQuotes(name) + " than a tensor");
}

llvm::Error Machine::makeTuple(std::optional<size_t> size) {
  Object tuple;
  tuple.kind = Kind::List;
  if (!size) {
    auto items = popToMark();
    if (!items)
      return cut();
    tuple.items = std::move(*items);
    return push(std::move(tuple));
  }
  if (stack.size() < *size)
    return cut();
  tuple.items.assign(stack.end() - *size, stack.end());
  stack.resize(stack.size() - *size);
  return push(std::move(tuple));
}

/// Appends the objects above the mark, or the last item or entry, to the list or dictionary below.
llvm::Error Machine::addItems(bool isDict, bool single) {
  std::vector<uint32_t> items;
  size_t size = isDict ? 2 : 1;
  if (!single) {
    auto all = popToMark();
    if (!all)
      return cut();
    items = std::move(*all);
  } else if (stack.size() >= size) {
    items.assign(stack.end() - size, stack.end());
    stack.resize(stack.size() - size);
  }
  Object *target = top();
  if (!target || items.size() % size != 0 || target->kind != (isDict ? Kind::Dict : Kind::List))
    return cut();
  llvm::append_range(target->items, items);
  return llvm::Error::success();
}

llvm::Error Machine::step(uint8_t opcode) {
  auto pushKind = [&](Kind kind) {
    Object object;
    object.kind = kind;
    return push(std::move(object));
  };
  // The sizes of numeric arguments of opcodes.
  auto number = [&](uint64_t size) { return takeNumber(size); };
  switch (opcode) {
  case Proto:
    return number(1) ? llvm::Error::success() : cut();
  case Frame:
    return number(8) ? llvm::Error::success() : cut();
  case Mark:
    return pushKind(Kind::Mark);
  case None:
    return pushKind(Kind::None);
  case NewTrue:
  case NewFalse:
    return push({.kind = Kind::Bool, .number = opcode == NewTrue});
  case EmptyDict:
    return pushKind(Kind::Dict);
  case EmptyList:
  case EmptyTuple:
    return pushKind(Kind::List);
  case BinInt:
  case BinInt1:
  case BinInt2: {
    auto value = number(opcode == BinInt ? 4 : opcode == BinInt1 ? 1 : 2);
    if (!value)
      return cut();
    return pushNumber(opcode == BinInt ? int64_t(int32_t(*value)) : int64_t(*value));
  }
  case Long1: {
    auto size = number(1);
    if (!size || *size > 8)
      return cut();
    auto value = number(*size);
    if (!value)
      return cut();
    unsigned unused = 64 - 8 * unsigned(*size);
    return pushNumber(*size == 0 ? 0 : int64_t(*value << unused) >> unused);
  }
  case BinUnicode:
  case ShortBinUnicode: {
    auto size = number(opcode == BinUnicode ? 4 : 1);
    if (size && *size > maxTextBytes)
      return wrong("has a pickle with a name of " + llvm::Twine(*size) + " bytes");
    auto text = size ? take(*size) : std::nullopt;
    return text ? pushText(*text) : cut();
  }
  case Global: {
    auto module = takeLine();
    auto name = module ? takeLine() : std::nullopt;
    return name ? makeGlobal(*module, *name) : cut();
  }
  case StackGlobal: {
    if (stack.size() < 2)
      return cut();
    llvm::StringRef name = objects[stack.back()].text,
                    module = objects[stack[stack.size() - 2]].text;
    stack.resize(stack.size() - 2);
    return makeGlobal(module, name);
  }
  case BinPersId:
    return makeStorage();
  case Reduce:
    return reduce();
  case Tuple:
    return makeTuple(std::nullopt);
  case Tuple1:
  case Tuple2:
  case Tuple3:
    return makeTuple(opcode - Tuple1 + 1);
  case Append:
  case Appends:
    return addItems(/*isDict=*/false, opcode == Append);
  case SetItem:
  case SetItems:
    return addItems(/*isDict=*/true, opcode == SetItem);
  case Build:
    // The metadata of modules that a dictionary keeps.
    if (stack.size() < 2 || objects[stack[stack.size() - 2]].kind != Kind::Dict)
      return cut();
    stack.pop_back();
    return llvm::Error::success();
  case BinPut:
  case LongBinPut:
  case Memoize: {
    auto index =
        opcode == Memoize ? std::optional<uint64_t>(memo.size()) : number(opcode == BinPut ? 1 : 4);
    if (!index || stack.empty())
      return cut();
    if (memo.size() == maxObjects)
      return wrong("has a pickle that memoizes more than " + llvm::Twine(maxObjects) + " objects");
    memo[*index] = stack.back();
    return llvm::Error::success();
  }
  case BinGet:
  case LongBinGet: {
    auto index = number(opcode == BinGet ? 1 : 4);
    auto found = index ? memo.find(*index) : memo.end();
    if (found == memo.end())
      return cut();
    if (stack.size() == maxObjects)
      return wrong("has a pickle that holds more than " + llvm::Twine(maxObjects) + " objects");
    stack.push_back(found->second);
    return llvm::Error::success();
  }
  default:
    return wrong("has a pickle with the instruction 0x" + llvm::utohexstr(opcode, true) +
                 ", which no dictionary of tensors needs");
  }
}

llvm::Expected<std::vector<TorchTensor>> Machine::tensorsOf(const Object &dict) {
  std::vector<TorchTensor> tensors;
  llvm::DenseSet<llvm::StringRef> names;
  for (size_t i = 0; i + 1 < dict.items.size(); i += 2) {
    const Object &key = objects[dict.items[i]], &value = objects[dict.items[i + 1]];
    if (key.kind != Kind::Text)
      return wrong("has a dictionary whose keys are not names");
    if (!value.tensor)
      return wrong("has the entry " + inQuotes(key.text) + ", which is not a tensor");
    if (!names.insert(key.text).second)
      return wrong("has the entry " + inQuotes(key.text) + " twice");
    tensors.push_back(*value.tensor);
    tensors.back().name = key.text;
  }
  return tensors;
}

llvm::Expected<std::vector<llvm::StringRef>> Machine::textsOf(const Object &list) const {
  std::vector<llvm::StringRef> texts;
  for (uint32_t item : list.items) {
    if (list.kind != Kind::List || objects[item].kind != Kind::Text)
      return wrong("has a list of storages whose names are not strings");
    texts.push_back(objects[item].text);
  }
  return texts;
}

bool Machine::isTrue(const Object &dict, llvm::StringRef key) const {
  for (size_t i = 0; dict.kind == Kind::Dict && i + 1 < dict.items.size(); i += 2)
    if (objects[dict.items[i]].text == key)
      return objects[dict.items[i + 1]].number != 0;
  return true;
}

llvm::Expected<const Object *> Machine::run() {
  while (!rest.empty()) {
    uint8_t opcode = rest.front();
    rest = rest.drop_front();
    if (opcode == Stop) {
      const Object *result = top();
      return result ? llvm::Expected<const Object *>(result) : cut();
    }
    if (llvm::Error error = step(opcode))
      return std::move(error);
  }
  return cut();
}

/// The tensors of a pickle that contains a dictionary of tensors.
llvm::Expected<std::vector<TorchTensor>> tensorsBy(Machine &machine, llvm::StringRef path) {
  auto result = machine.run();
  if (!result)
    return result.takeError();
  if ((*result)->kind != Kind::Dict)
    return inputError(path, "holds something other than a dictionary of tensors", unpickled);
  return machine.tensorsOf(**result);
}

} // namespace

llvm::Expected<std::vector<TorchTensor>> readTorchPickle(llvm::ArrayRef<uint8_t> pickle,
                                                         llvm::StringRef path) {
  if (pickle.size() > maxPickleBytes)
    return inputError(path,
                      "has a pickle of " + llvm::Twine(pickle.size()) + " bytes, at most " +
                          llvm::Twine(maxPickleBytes) + " are supported",
                      unpickled);
  Machine machine(pickle, path);
  return tensorsBy(machine, path);
}

llvm::Expected<LegacyPickles> readLegacyPickles(llvm::ArrayRef<uint8_t> bytes,
                                                llvm::StringRef path) {
  // The magic number, which is too large for the machine, and version 1001.
  constexpr llvm::StringLiteral head("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."
                                     "\x80\x02M\xe9\x03.");
  if (!llvm::toStringRef(bytes).starts_with(head))
    return inputError(path, "has a pickle that is not a torch checkpoint", unpickled);
  LegacyPickles found;
  found.rest = bytes.drop_front(head.size());
  auto next = [&] { return Machine(found.rest.take_front(maxPickleBytes), path); };
  auto skip = [&](const Machine &machine) {
    size_t taken = std::min(found.rest.size(), maxPickleBytes) - machine.unread().size();
    found.rest = found.rest.drop_front(taken);
  };
  Machine aboutMachine = next();
  auto about = aboutMachine.run();
  if (!about)
    return about.takeError();
  found.littleEndian = aboutMachine.isTrue(**about, "little_endian");
  skip(aboutMachine);
  Machine tensors = next();
  auto made = tensorsBy(tensors, path);
  if (!made)
    return made.takeError();
  found.tensors = std::move(*made);
  skip(tensors);
  Machine storages = next();
  auto list = storages.run();
  if (!list)
    return list.takeError();
  auto names = storages.textsOf(**list);
  if (!names)
    return names.takeError();
  found.storages = std::move(*names);
  skip(storages);
  return found;
}

} // namespace mica
