#include "backends/runtime/profile/Roofline.h"

#include <algorithm>

namespace mica::rt {

double shareOfRoofline(const Peaks &peaks, double bytes, double flops, double seconds) {
  if (seconds <= 0)
    return 0;
  double reading = peaks.bytesPerSecond > 0 ? bytes / peaks.bytesPerSecond : 0;
  double computing = peaks.flopsPerSecond > 0 ? flops / peaks.flopsPerSecond : 0;
  return std::max(reading, computing) / seconds;
}

} // namespace mica::rt
