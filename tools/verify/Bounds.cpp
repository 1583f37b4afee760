//===- Bounds.cpp - error bounds of programs ------------------------------===//

#include "tools/verify/Bounds.h"

#include <cmath>

using namespace llvm;

namespace mica::tool {

double boundOfRounding(double bits) {
  double step = (bits < 8 ? 2.2 : 3) * std::exp2(1 - bits);
  return 8 * step * step / 12;
}

} // namespace mica::tool
