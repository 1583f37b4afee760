#include "backends/runtime/engine/Session.h"
#include "backends/runtime/support/Seconds.h"

#include <algorithm>
#include <cassert>
#include <functional>
#include <map>
#include <optional>
#include <utility>

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

/// The number of elements; nullopt if it exceeds any possible memory.
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
} // namespace

Status Session::reserveCaches(int64_t sequences) {
  const Manifest &m = model.manifest();
  for (const CacheSpec &spec : m.caches) {
    std::vector<int64_t> shape = spec.shape;
    for (int64_t &size : shape) {
      if (size == CacheSpec::batchSize)
        size = sequences;
      else if (size == CacheSpec::blockCount)
        size = blocksOfCache(m, spec, maxRows);
    }
    std::optional<uint64_t> count = elementCount(shape);
    if (!count)
      return Error{"the cache '" + spec.name + "' is too large for " + std::to_string(sequences) +
                   " sequences; use fewer or compile with a smaller --max-seq"};
    Result<Memory> memory = Memory::reserve(*count * spec.elementBytes());
    if (!memory)
      return memory.error();
    caches.push_back(*std::move(memory));
    cacheShapes.push_back(std::move(shape));
  }
  return {};
}

Result<std::unique_ptr<Session>> Session::create(const Model &model, int64_t sequences,
                                                 int64_t chunk, uint64_t checkpointBytes) {
  Computation computation(model.runtime().communicator());
  std::unique_ptr<Session> session(new Session(model, chunk));
  session->lengths.resize(static_cast<size_t>(sequences));
  session->computed.resize(static_cast<size_t>(sequences));
  if (model.manifest().canDraft())
    session->heads.resize(static_cast<size_t>(sequences));
  if (model.manifest().takesLengths())
    session->histories.resize(static_cast<size_t>(sequences));
  if (Status reserved = session->reserveCaches(sequences); !reserved)
    return reserved.error();
  std::vector<StateCheckpoints::State> states;
  for (size_t i = 0; i < session->caches.size(); ++i)
    if (const CacheSpec &spec = model.manifest().caches[i]; spec.slots > 0)
      states.push_back({&spec, static_cast<std::byte *>(session->caches[i].data())});
  // Those of several ranks would have to be restored together.
  if (model.manifest().ranks > 1)
    checkpointBytes = 0;
  session->checkpoints =
      std::make_unique<StateCheckpoints>(std::move(states), sequences, checkpointBytes);
  if (model.isLeader()) {
    if (Status sent =
            RankMessage::send(*model.runtime().communicator(),
                              {RankMessage::Kind::Open, session->number(), {sequences, chunk}, {}});
        !sent)
      return sent.error();
    session->isAnnounced = true;
  }
  return session;
}

Session::~Session() {
  // A rank that has failed ends the program anyway.
  if (isAnnounced)
    (void)RankMessage::send(*model.runtime().communicator(),
                            {RankMessage::Kind::Close, number(), {}, {}});
}

/// Tells the other ranks about a call.
Status Session::announce(const Rows &rows, RowRole role, size_t firstLogits) {
  RankMessage message{RankMessage::Kind::Call, number(), {}, {}};
  message.numbers = {static_cast<int64_t>(role), static_cast<int64_t>(firstLogits)};
  size_t next = 2;
  for (const std::vector<int32_t> Rows::*member : Rows::vectors) {
    const std::vector<int32_t> &values = rows.*member;
    message.numbers[next++] = static_cast<int64_t>(values.size());
    message.values.insert(message.values.end(), values.begin(), values.end());
  }
  Communicator &ranks = *model.runtime().communicator();
  CallObserver *profile = model.runtime().profile();
  if (!profile)
    return RankMessage::send(ranks, message);
  Status sent;
  profile->exchange("broadcast", [&] {
    sent = RankMessage::send(ranks, message);
    return message.bytes();
  });
  return sent;
}

/// Runs a call of rank 0.
Status Session::repeat(const RankMessage &message) {
  Computation computation(model.runtime().communicator());
  Rows rows;
  auto from = message.values.begin();
  size_t next = 2;
  for (std::vector<int32_t> Rows::*member : Rows::vectors) {
    auto to = from + message.numbers[next++];
    (rows.*member).assign(from, to);
    from = to;
  }
  auto firstLogits = static_cast<size_t>(message.numbers[1]);
  if (Status grown = growLogits(firstLogits + rows.outputs.size()); !grown)
    return grown;
  return call(rows, static_cast<RowRole>(message.numbers[0]), firstLogits);
}

Status Session::follow(const Model &model) {
  std::map<int64_t, std::unique_ptr<Session>> sessions;
  for (;;) {
    Result<RankMessage> message = RankMessage::receive(*model.runtime().communicator());
    if (!message)
      return message.error();
    switch (message->kind) {
    case RankMessage::Kind::End:
      return {};
    case RankMessage::Kind::Open: {
      Result<std::unique_ptr<Session>> session =
          create(model, message->numbers[0], message->numbers[1]);
      if (!session)
        return session.error();
      sessions[message->session] = *std::move(session);
      break;
    }
    case RankMessage::Kind::Close:
      sessions.erase(message->session);
      break;
    case RankMessage::Kind::Call:
      if (Status called = sessions.at(message->session)->repeat(*message); !called)
        return called;
      break;
    }
  }
}

Status checkToken(const Manifest &manifest, int32_t token) {
  if (token >= 0 && token < manifest.vocab)
    return {};
  return Error{"token " + std::to_string(token) + " is not in the model's vocabulary (0 to " +
               std::to_string(manifest.vocab - 1) + "); use another prompt"};
}

Status Session::add(int64_t sequence, int32_t token, RowRole role, bool wantLogits) {
  const Manifest &m = model.manifest();
  if (Status known = checkToken(m, token); !known)
    return known;
  if (room(sequence) == 0)
    return Error{"the context of " + std::to_string(m.maxSeq) +
                 " positions is full; shorten the prompt" + m.largerContextHint()};
  if (wantLogits)
    queue.outputs.push_back(static_cast<int32_t>(queue.tokens.size()));
  queue.tokens.push_back(token);
  queue.sequences.push_back(static_cast<int32_t>(sequence));
  queue.positions.push_back(static_cast<int32_t>(lengths[sequence]++));
  queue.roles.push_back(role);
  if (histories.empty())
    return {};
  histories[sequence].ids.push_back(token);
  if (m.dependsOnRole)
    histories[sequence].roles.push_back(role);
  return {};
}

void Session::takeCheckpoint(int64_t sequence) {
  takeCheckpoint(sequence, std::min(lengths[sequence], computed[sequence].states), 1);
}

/// Takes a checkpoint before position `end`, of which all earlier ones are computed, if it is at
/// least `spacing` positions after the previous one.
void Session::takeCheckpoint(int64_t sequence, int64_t end, int64_t spacing) {
  if (!keepsCheckpoints())
    return;
  int64_t length = checkpoints->positionBefore(end);
  if (length > computed[sequence].firstInState &&
      length >= checkpoints->nearest(sequence, end) + spacing &&
      checkpoints->isStored(length, computed[sequence].states))
    checkpoints->take(sequence, length);
}

void Session::setTotalLength(int64_t sequence, int64_t total) {
  if (!histories.empty())
    histories[sequence].totalLength = total;
}

/// The sequence length that determines the frequencies of a row.
int64_t Session::lengthAt(int64_t sequence, int64_t position) const {
  return std::max(histories[sequence].totalLength, position + 1);
}

int64_t Session::positionsUntilThreshold(int64_t sequence) const {
  const std::vector<int64_t> &thresholds = model.manifest().ropeLengthThresholds;
  int64_t length = lengths[sequence];
  if (histories.empty())
    return room(sequence);
  size_t regime = ropeRegime(lengthAt(sequence, length));
  return regime < thresholds.size() ? thresholds[regime] - length : room(sequence);
}

bool Session::atMemoryLimit() const {
  constexpr size_t minQueuedOutputs = 4;
  auto withLogits = static_cast<int64_t>(queue.outputs.size());
  return queue.outputs.size() >= minQueuedOutputs &&
         bytesOfCall(model.manifest(), queue.count() + 1, withLogits + 1) > kMaxStepBytes;
}

void Session::Rows::clear() {
  for (std::vector<int32_t> Rows::*member : vectors)
    (this->*member).clear();
  roles.clear();
}

static Status grow(Memory &memory, uint64_t bytes) {
  if (memory.data() && memory.size() >= bytes)
    return {};
  Result<Memory> larger = Memory::reserve(bytes, Pages::Huge);
  if (!larger)
    return larger.error();
  memory = *std::move(larger);
  return {};
}

Status Session::growScratch(const Rows &rows) {
  return grow(buffersOfCall().scratch, scratchBytes(model.manifest(), rows.count(),
                                                    static_cast<int64_t>(rows.outputs.size())));
}

/// Grows the buffer of logits; invalidates the logits of earlier calls.
Status Session::growLogits(size_t outputs) {
  return grow(buffersOfCall().logits,
              outputs * static_cast<uint64_t>(model.manifest().vocab) * sizeof(float));
}

/// Grows the buffer of hidden states, if the program has a multi-token prediction head.
Status Session::growHidden(size_t rows) {
  return grow(buffersOfCall().hidden,
              rows * static_cast<uint64_t>(model.manifest().hidden) * sizeof(float));
}

/// Calls the model's forward function. Its logits are stored after those of the first `firstLogits`
/// rows; the buffer must be large enough for all of them. `states` are the hidden states of rows of
/// a multi-token prediction head.
Status Session::call(const Rows &rows, RowRole role, size_t firstLogits,
                     std::span<const float> states) {
  if (role != RowRole::Draft)
    if (Status computed = computeHeadRows(rows); !computed)
      return computed;
  if (Status grown = growScratch(rows); !grown)
    return grown;
  if (Status grown = growHidden(rows.tokens.size()); !grown)
    return grown;
  std::copy(states.begin(), states.end(), static_cast<float *>(buffersOfCall().hidden.data()));
  const Manifest &m = model.manifest();
  std::vector<Descriptor> arguments;
  auto vectorOf = [](const std::vector<int32_t> &values) {
    return Descriptor(values.data(), {static_cast<int64_t>(values.size())});
  };
  auto bytesAt = [](const void *data, size_t size) {
    return Descriptor(data, {static_cast<int64_t>(size)});
  };
  size_t cache = 0;
  for (EntryRole role : m.arguments)
    switch (role) {
    case EntryRole::Tokens:
      arguments.push_back(vectorOf(rows.tokens));
      break;
    case EntryRole::Sequences:
      arguments.push_back(vectorOf(rows.sequences));
      break;
    case EntryRole::Positions:
      arguments.push_back(vectorOf(rows.positions));
      break;
    case EntryRole::LogitIndices:
      arguments.push_back(vectorOf(rows.outputs));
      break;
    case EntryRole::Lengths:
      arguments.push_back(vectorOf(rows.lengths));
      break;
    case EntryRole::Cache:
      arguments.emplace_back(caches[cache].data(), cacheShapes[cache]);
      ++cache;
      break;
    case EntryRole::Hidden:
      arguments.emplace_back(buffersOfCall().hidden.data(),
                             std::vector<int64_t>{rows.count(), m.hidden});
      break;
    case EntryRole::Weights:
      arguments.push_back(bytesAt(model.weights().data(), model.weights().size()));
      break;
    case EntryRole::Scratch:
      arguments.push_back(bytesAt(buffersOfCall().scratch.data(), buffersOfCall().scratch.size()));
      break;
    case EntryRole::Logits:
      arguments.emplace_back(
          static_cast<const float *>(buffersOfCall().logits.data()) +
              firstLogits * static_cast<size_t>(m.vocab),
          std::vector<int64_t>{static_cast<int64_t>(rows.outputs.size()), m.vocab});
      break;
    }
  std::vector<void *> pointers;
  pointers.reserve(arguments.size());
  for (Descriptor &argument : arguments)
    pointers.push_back(argument.get());
  CallObserver *profile = model.runtime().profile();
  if (profile)
    profile->beginCall(rows.sequences, rows.positions);
  // Last: if there is no memory for what precedes it, the other ranks do not wait for this one.
  if (isAnnounced)
    if (Status sent = announce(rows, role, firstLogits); !sent)
      return sent;
  model.forward(pointers.data(), role);
  if (profile)
    profile->endCall(rows.count());
  if (role != RowRole::Draft)
    finishRows(rows, role);
  return {};
}

void Session::setDrafts(int64_t sequence, bool wanted) {
  if (heads.empty())
    return;
  heads[sequence].isWanted = wanted;
  if (!wanted)
    heads[sequence].rows = {};
}

std::span<const float> Session::hiddenOf(size_t row) const {
  auto width = static_cast<size_t>(model.manifest().hidden);
  return std::span(static_cast<const float *>(buffersOfCall().hidden.data()) + row * width, width);
}

/// Moves the first `count` rows of a sequence that its head has not computed to `rows` and
/// `states`. `next` is the token after the last one.
void Session::takeHeadRows(int64_t sequence, size_t count, int32_t next, Rows &rows,
                           std::vector<float> &states) {
  MtpRows &own = heads[sequence].rows;
  for (size_t i = 0; i < count; ++i) {
    rows.tokens.push_back(own.tokenAfter(i, next));
    rows.sequences.push_back(static_cast<int32_t>(sequence));
    rows.positions.push_back(static_cast<int32_t>(own.position(i)));
    std::span<const float> state = own.state(i);
    states.insert(states.end(), state.begin(), state.end());
  }
  own.drop(count);
}

/// Runs the head for the first `count` rows of a sequence that it has not computed.
Status Session::runHead(int64_t sequence, size_t count, int32_t next) {
  Rows rows;
  std::vector<float> states;
  takeHeadRows(sequence, count, next, rows, states);
  return rows.count() > 0 ? call(rows, RowRole::Draft, 0, states) : Status();
}

/// Before rows of the model are computed: runs the head for earlier ones if there would be more
/// than a call of the model has. Otherwise they wait for the next draft.
Status Session::computeHeadRows(const Rows &rows) {
  for (size_t begin = 0, end; !heads.empty() && begin < rows.tokens.size(); begin = end) {
    int64_t sequence = rows.sequences[begin];
    for (end = begin; end < rows.tokens.size() && rows.sequences[end] == sequence;)
      ++end;
    const MtpRows &own = heads[sequence].rows;
    if (own.end() == rows.positions[begin] &&
        static_cast<int64_t>(own.size() + end - begin) > maxRows)
      if (Status ran = runHead(sequence, own.size(), rows.tokens[begin]); !ran)
        return ran;
  }
  return {};
}

Result<std::vector<Tokens>> Session::draft(std::span<const DraftRequest> requests) {
  std::vector<Tokens> drafts(requests.size());
  Rows rows;
  std::vector<float> states;
  std::vector<size_t> active;
  for (size_t i = 0; i < requests.size(); ++i) {
    const DraftRequest &request = requests[i];
    MtpRows &own = heads[request.sequence].rows;
    if (own.size() == 0 || own.end() != lengths[request.sequence])
      continue;
    // Rows of a prompt need no logits, and could be too many for one call with those of others.
    if (static_cast<int64_t>(own.size()) > model.manifest().batchInvariantRows)
      if (Status ran = runHead(request.sequence, own.size() - 1, own.tokenAfter(own.size() - 2, 0));
          !ran)
        return ran.error();
    takeHeadRows(request.sequence, own.size(), request.next, rows, states);
    rows.outputs.push_back(static_cast<int32_t>(rows.count() - 1));
    active.push_back(i);
  }
  auto vocab = static_cast<size_t>(model.manifest().vocab);
  while (!active.empty()) {
    if (Status grown = growLogits(active.size()); !grown)
      return grown.error();
    if (Status called = call(rows, RowRole::Draft, 0, states); !called)
      return called.error();
    Rows computed = std::exchange(rows, {});
    std::vector<size_t> before = std::exchange(active, {});
    states.clear();
    for (size_t output = 0; output < before.size(); ++output) {
      const float *row = static_cast<const float *>(buffersOfCall().logits.data()) + output * vocab;
      Tokens &draft = drafts[before[output]];
      draft.push_back(static_cast<int32_t>(std::max_element(row, row + vocab) - row));
      const DraftRequest &request = requests[before[output]];
      if (static_cast<int64_t>(draft.size()) >= request.limit)
        continue;
      auto last = static_cast<size_t>(computed.outputs[output]);
      rows.outputs.push_back(static_cast<int32_t>(rows.count()));
      rows.tokens.push_back(draft.back());
      rows.sequences.push_back(static_cast<int32_t>(request.sequence));
      rows.positions.push_back(computed.positions[last] + 1);
      std::span<const float> state = hiddenOf(last);
      states.insert(states.end(), state.begin(), state.end());
      active.push_back(before[output]);
    }
  }
  return drafts;
}

void Session::SequenceHistory::add(int64_t position, int64_t length) {
  if (position == 0)
    lengthOfFirst = length;
  if (position == 0 || (position == uniform && length == lengthOfFirst))
    uniform = position + 1;
}

/// Records that rows have been computed, and takes checkpoints at regular distances.
void Session::finishRows(const Rows &rows, RowRole role) {
  // If decoded positions have other values than those of a prompt, no prompt can reuse them.
  bool isReusable = role == RowRole::Prompt || !model.manifest().dependsOnRole;
  for (size_t row = 0; row < rows.tokens.size(); ++row) {
    int64_t sequence = rows.sequences[row], position = rows.positions[row];
    Computed &end = computed[static_cast<size_t>(sequence)];
    end.caches = std::max(end.caches, position + 1);
    end.states = std::max(end.states, position + 1);
    if (!rows.lengths.empty())
      histories[sequence].add(position, rows.lengths[row]);
    if (!heads.empty() && heads[sequence].isWanted)
      heads[sequence].rows.add(position, rows.tokens[row], hiddenOf(row));
    bool isLast = row + 1 == rows.tokens.size() || rows.sequences[row + 1] != sequence;
    if (isLast && isReusable)
      takeCheckpoint(sequence, position + 1, StateCheckpoints::kSpacing);
  }
}

/// The role with which a position was computed; arbitrary if the model does not depend on it.
RowRole Session::roleAt(int64_t sequence, int64_t position) const {
  const std::vector<RowRole> &roles = histories[sequence].roles;
  return roles.empty() ? RowRole::Prompt : roles[static_cast<size_t>(position)];
}

/// Recomputes the first `end` positions of a sequence as parts of a text of `length` positions.
/// Returns the number of positions computed before `shouldContinue` returned false.
Result<int64_t> Session::recompute(int64_t sequence, int64_t end, int64_t length,
                                   const ShouldContinue &shouldContinue) {
  auto start = std::chrono::steady_clock::now();
  if (Status grown = growLogits(0); !grown)
    return grown.error();
  Rows rows;
  int64_t filled = 0;
  while (filled < end && (!shouldContinue || shouldContinue(sequence))) {
    rows.clear();
    RowRole role = roleAt(sequence, filled);
    for (int64_t position = filled;
         position < std::min(end, filled + maxRows) && roleAt(sequence, position) == role;
         ++position) {
      rows.tokens.push_back(histories[sequence].ids[static_cast<size_t>(position)]);
      rows.sequences.push_back(static_cast<int32_t>(sequence));
      rows.positions.push_back(static_cast<int32_t>(position));
      rows.lengths.push_back(static_cast<int32_t>(length));
    }
    if (filled == 0)
      startOver(sequence);
    if (Status called = call(rows, role, 0); !called)
      return called.error();
    filled += rows.count();
  }
  numRecomputed += filled;
  secondsRecomputing += secondsSince(start);
  return filled;
}

void Session::discardQueued() {
  for (size_t row = queue.tokens.size(); row-- > 0;)
    forget(queue.sequences[row], queue.positions[row]);
  queue.clear();
}

/// Sets the sequence lengths of the queued rows.
Result<bool> Session::prepare(const ShouldContinue &shouldContinue) {
  queue.lengths.clear();
  if (histories.empty())
    return true;
  for (size_t begin = 0, end; begin < queue.tokens.size(); begin = end) {
    int64_t sequence = queue.sequences[begin], first = queue.positions[begin];
    for (end = begin; end < queue.tokens.size() && queue.sequences[end] == sequence;)
      ++end;
    SequenceHistory &known = histories[sequence];
    int64_t last = lengthAt(sequence, queue.positions[end - 1]);
    size_t regime = ropeRegime(last);
    auto lengthOf = [&](int64_t position) {
      int64_t own = lengthAt(sequence, position);
      return ropeRegime(own) == regime ? own : last;
    };
    if (first > 0 && known.regime != regime) {
      Result<int64_t> filled = recompute(sequence, first, lengthOf(first), shouldContinue);
      if (!filled)
        return filled.error();
      if (*filled < first) {
        discardQueued();
        // Before the first call nothing has changed.
        if (*filled > 0) {
          forget(sequence, *filled);
          known.regime = regime;
        }
        return false;
      }
    }
    known.regime = regime;
    for (size_t row = begin; row < end; ++row)
      queue.lengths.push_back(static_cast<int32_t>(lengthOf(queue.positions[row])));
  }
  return true;
}

/// Takes the rows of `queued` with `role` that are not done, for each sequence up to the first row
/// with another role, and marks them as done. `order` receives the index of each of their outputs
/// in the queue.
Session::Rows Session::takeRole(const Rows &queued, RowRole role, std::vector<bool> &done,
                                std::vector<size_t> &order) const {
  Rows rows;
  std::vector<bool> waits(lengths.size());
  size_t output = 0;
  for (size_t row = 0; row < queued.tokens.size(); ++row) {
    bool wanted =
        output < queued.outputs.size() && queued.outputs[output] == static_cast<int32_t>(row);
    size_t number = wanted ? output++ : output;
    auto sequence = static_cast<size_t>(queued.sequences[row]);
    if (done[row])
      continue;
    if (queued.roles[row] != role || waits[sequence]) {
      waits[sequence] = true;
      continue;
    }
    done[row] = true;
    if (wanted) {
      rows.outputs.push_back(static_cast<int32_t>(rows.tokens.size()));
      order.push_back(number);
    }
    rows.tokens.push_back(queued.tokens[row]);
    rows.sequences.push_back(queued.sequences[row]);
    rows.positions.push_back(queued.positions[row]);
    if (!queued.lengths.empty())
      rows.lengths.push_back(queued.lengths[row]);
  }
  return rows;
}

/// Moves row i to row order[i], for all i.
static void reorderRows(float *values, size_t width, std::vector<size_t> order) {
  for (size_t i = 0; i < order.size(); ++i)
    while (order[i] != i) {
      size_t to = order[i];
      std::swap_ranges(values + i * width, values + (i + 1) * width, values + to * width);
      std::swap(order[i], order[to]);
    }
}

/// Calls the model for rows, once for each role if the model depends on it. Prompts are
/// first, because a sequence's prompt precedes its decoded rows.
Status Session::callByRole(const Rows &queued) {
  if (Status grown = growLogits(queued.outputs.size()); !grown)
    return grown;
  const std::vector<RowRole> &roles = queued.roles;
  bool mixed = std::adjacent_find(roles.begin(), roles.end(), std::not_equal_to<>()) != roles.end();
  if (!mixed || !model.manifest().dependsOnRole)
    return call(queued, roles.empty() ? RowRole::Decode : roles.front(), 0);
  std::vector<bool> done(roles.size());
  std::vector<size_t> order;
  RowRole role = RowRole::Prompt;
  while (std::find(done.begin(), done.end(), false) != done.end()) {
    size_t before = order.size();
    if (Rows rows = takeRole(queued, role, done, order); rows.count() > 0)
      if (Status called = call(rows, role, before); !called)
        return called;
    role = role == RowRole::Prompt ? RowRole::Decode : RowRole::Prompt;
  }
  reorderRows(static_cast<float *>(buffersOfCall().logits.data()),
              static_cast<size_t>(model.manifest().vocab), std::move(order));
  return {};
}

namespace {
/// Calls a function before each kernel of a model, except those of calls that the function makes.
class Interruptions {
public:
  Interruptions(Runtime &runtime, size_t &depth, const Session::BeforeKernels &function)
      : runtime(runtime), depth(depth), function(function) {
    if (function)
      runtime.setBeforeKernels(&interrupt);
  }
  ~Interruptions() {
    if (function)
      runtime.setBeforeKernels(nullptr);
  }
  Interruptions(const Interruptions &) = delete;
  Interruptions &operator=(const Interruptions &) = delete;

private:
  Runtime &runtime;
  size_t &depth;
  const Session::BeforeKernels &function;
  const std::function<void()> interrupt = [this] {
    runtime.setBeforeKernels(nullptr);
    ++depth;
    function();
    --depth;
    runtime.setBeforeKernels(&interrupt);
  };
};
} // namespace

Result<std::span<const float>> Session::decode(const BeforeKernels &beforeKernels) {
  assert((depth == 0 || !beforeKernels) && "calls that interrupt another one are not interrupted");
  if (queue.lengths.size() != queue.tokens.size())
    if (Result<bool> prepared = prepare({}); !prepared)
      return prepared.error();
  Rows queued = std::exchange(queue, {}); // the function may queue others
  Status called;
  {
    Interruptions interruptions(model.runtime(), depth, beforeKernels);
    called = callByRole(queued);
  }
  if (!called) {
    queue = std::move(queued);
    return called.error();
  }
  size_t wanted = queued.outputs.size();
  return std::span<const float>(static_cast<const float *>(buffersOfCall().logits.data()),
                                wanted * static_cast<size_t>(model.manifest().vocab));
}

} // namespace mica::rt
