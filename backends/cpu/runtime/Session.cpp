#include "backends/cpu/runtime/Session.h"
#include "backends/cpu/runtime/Profile.h"

#include <optional>

namespace mica::rt {

namespace {
/// A strided memref descriptor of any rank, as words.
class Descriptor {
public:
  Descriptor(const void *data, const std::vector<int64_t> &sizes) : words(3 + 2 * sizes.size()) {
    words[0] = words[1] = reinterpret_cast<int64_t>(data);
    int64_t stride = 1;
    for (size_t i = sizes.size(); i-- > 0; stride *= sizes[i]) {
      words[3 + i] = sizes[i];
      words[3 + sizes.size() + i] = stride;
    }
  }
  void *get() { return words.data(); }

private:
  std::vector<int64_t> words;
};

/// The product, unless it leaves the range that memory could have.
std::optional<uint64_t> elementCount(const std::vector<int64_t> &shape) {
  constexpr uint64_t limit = uint64_t(1) << 50;
  uint64_t count = 1;
  for (int64_t size : shape) {
    if (size < 0 || (size > 0 && count > limit / static_cast<uint64_t>(size)))
      return std::nullopt;
    count *= static_cast<uint64_t>(size);
  }
  return count;
}

int64_t countOf(const std::vector<int32_t> &values) { return static_cast<int64_t>(values.size()); }
} // namespace

Status Session::reserveCaches(int64_t sequences) {
  const Manifest &m = model.manifest();
  for (const CacheSpec &spec : m.caches) {
    std::vector<int64_t> shape = spec.shape;
    for (int64_t &size : shape) {
      if (size == CacheSpec::batchSize)
        size = sequences;
      else if (size == CacheSpec::blockCount)
        size = (m.maxSeq + m.positionBlock - 1) / m.positionBlock;
    }
    std::optional<uint64_t> count = elementCount(shape);
    if (!count)
      return Error{"the cache '" + spec.name + "' is too large for " + std::to_string(sequences) +
                   " sequences, use fewer or compile with a smaller --max-seq"};
    Result<Memory> memory = Memory::reserve(*count * spec.elementBytes());
    if (!memory)
      return memory.error();
    caches.push_back(*std::move(memory));
    cacheShapes.push_back(std::move(shape));
  }
  return {};
}

Result<std::unique_ptr<Session>> Session::create(const Model &model, int64_t sequences) {
  std::unique_ptr<Session> session(new Session(model));
  session->lengths.resize(static_cast<size_t>(sequences));
  if (Status reserved = session->reserveCaches(sequences); !reserved)
    return reserved.error();
  return session;
}

Status Session::push(int64_t sequence, int32_t token, bool wantLogits) {
  const Manifest &m = model.manifest();
  if (token < 0 || token >= m.vocab)
    return Error{"token " + std::to_string(token) + " is not in the model's vocabulary (0 to " +
                 std::to_string(m.vocab - 1) + "), give another prompt"};
  if (room(sequence) == 0)
    return Error{"the context of " + std::to_string(m.maxSeq) +
                 " positions is full, shorten the prompt or compile with a larger --max-seq"};
  if (wantLogits)
    outputs.push_back(static_cast<int32_t>(tokens.size()));
  tokens.push_back(token);
  rowSequences.push_back(static_cast<int32_t>(sequence));
  positions.push_back(static_cast<int32_t>(lengths[sequence]++));
  return {};
}

Status Session::growBuffers() {
  const Manifest &m = model.manifest();
  auto grow = [](Memory &memory, uint64_t bytes) -> Status {
    if (memory.data() && memory.size() >= bytes)
      return {};
    Result<Memory> larger = Memory::reserve(bytes);
    if (!larger)
      return larger.error();
    memory = *std::move(larger);
    return {};
  };
  if (Status grown = grow(scratch, m.scratchBytesPerRow * tokens.size() + m.scratchBytesFixed);
      !grown)
    return grown;
  return grow(logits, outputs.size() * static_cast<uint64_t>(m.vocab) * sizeof(float));
}

Result<std::span<const float>> Session::run() {
  if (Status grown = growBuffers(); !grown)
    return grown.error();
  const Manifest &m = model.manifest();
  int64_t rows = countOf(tokens), wanted = countOf(outputs);
  std::vector<Descriptor> arguments;
  for (const std::vector<int32_t> *rowData : {&tokens, &rowSequences, &positions})
    arguments.emplace_back(rowData->data(), std::vector<int64_t>{rows});
  arguments.emplace_back(outputs.data(), std::vector<int64_t>{wanted});
  for (size_t i = 0; i < caches.size(); ++i)
    arguments.emplace_back(caches[i].data(), cacheShapes[i]);
  arguments.emplace_back(model.weights().data(),
                         std::vector<int64_t>{static_cast<int64_t>(model.weights().size())});
  arguments.emplace_back(scratch.data(),
                         std::vector<int64_t>{static_cast<int64_t>(scratch.size())});
  arguments.emplace_back(logits.data(), std::vector<int64_t>{wanted, m.vocab});
  std::vector<void *> pointers;
  pointers.reserve(arguments.size());
  for (Descriptor &argument : arguments)
    pointers.push_back(argument.get());
  Profile *profile = activeProfile();
  if (profile)
    profile->beginCall(rowSequences, positions);
  model.forward(pointers.data());
  if (profile)
    profile->endCall(rows);
  for (std::vector<int32_t> *rowData : {&tokens, &rowSequences, &positions, &outputs})
    rowData->clear();
  return std::span<const float>(static_cast<const float *>(logits.data()),
                                static_cast<size_t>(wanted * m.vocab));
}

} // namespace mica::rt
