// What rank 0 of a program tells the other ranks.
#ifndef MICA_BACKENDS_RUNTIME_ENGINE_RANKMESSAGE_H
#define MICA_BACKENDS_RUNTIME_ENGINE_RANKMESSAGE_H

#include "backends/runtime/abi/Communicator.h"

#include <array>
#include <vector>

namespace mica::rt {

/// Rank 0 decides what is computed. The other ranks have the same sessions and run the same calls.
struct RankMessage {
  enum class Kind : int64_t {
    End,   ///< The ranks have finished.
    Open,  ///< Create a session: numbers are those of Session::create.
    Close, ///< Destroy a session.
    Call,  ///< Call the model's forward function: see Session::call.
  };
  static constexpr size_t numNumbers = 7;

  Kind kind = Kind::End;
  int64_t session = 0; ///< identifies a session
  std::array<int64_t, numNumbers> numbers = {};
  std::vector<int32_t> values;

  /// The number of bytes that `send` sends.
  uint64_t bytes() const;
  /// Called by rank 0.
  static Status send(Communicator &ranks, const RankMessage &message);
  /// Called by the others; waits for a message.
  static Result<RankMessage> receive(Communicator &ranks);
};

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_ENGINE_RANKMESSAGE_H
