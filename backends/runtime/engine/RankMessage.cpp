#include "backends/runtime/engine/RankMessage.h"

#include <algorithm>

namespace mica::rt {

namespace {
/// What is sent first. A call of a few rows fits.
struct Head {
  RankMessage::Kind kind;
  int64_t session;
  std::array<int64_t, RankMessage::numNumbers> numbers;
  int64_t count; ///< of values
  std::array<int32_t, 64> values;
};
} // namespace

uint64_t RankMessage::bytes() const {
  size_t inHead = std::min(Head().values.size(), values.size());
  return sizeof(Head) + (values.size() - inHead) * sizeof(int32_t);
}

Status RankMessage::send(Communicator &ranks, const RankMessage &message) {
  Head head{message.kind,
            message.session,
            message.numbers,
            static_cast<int64_t>(message.values.size()),
            {}};
  size_t first = std::min(head.values.size(), message.values.size());
  std::copy_n(message.values.begin(), first, head.values.begin());
  if (Status done = ranks.broadcast(&head, sizeof head); !done)
    return done;
  if (first == message.values.size())
    return {};
  // Rank 0 only reads what it broadcasts.
  return ranks.broadcast(const_cast<int32_t *>(message.values.data() + first),
                         (message.values.size() - first) * sizeof(int32_t));
}

Result<RankMessage> RankMessage::receive(Communicator &ranks) {
  Head head;
  if (Status done = ranks.broadcast(&head, sizeof head); !done)
    return done.error();
  RankMessage message{head.kind, head.session, head.numbers, {}};
  message.values.resize(static_cast<size_t>(head.count));
  size_t first = std::min(head.values.size(), message.values.size());
  std::copy_n(head.values.begin(), first, message.values.begin());
  if (first < message.values.size())
    if (Status done = ranks.broadcast(message.values.data() + first,
                                      (message.values.size() - first) * sizeof(int32_t));
        !done)
      return done.error();
  return message;
}

} // namespace mica::rt
