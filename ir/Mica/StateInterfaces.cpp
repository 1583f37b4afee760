//===- StateInterfaces.cpp - state kept between calls ---------------------===//

#include "ir/Mica/StateInterfaces.h"

using namespace mlir;
using namespace mica;

#include "ir/Mica/StateOpInterfaces.cpp.inc"
#include "ir/Mica/StateTypeInterfaces.cpp.inc"

Value UpdatesState::getStateBefore(Value next) {
  for (const StateUpdate &update : getStateUpdates())
    if (update.next == next)
      return update.state;
  return {};
}

Value UpdatesState::getStateAfter(Value state) {
  for (const StateUpdate &update : getStateUpdates())
    if (update.state == state)
      return update.next;
  return {};
}
