// The ratio of a measured time to the limits of the machine.
#ifndef MICA_BACKENDS_RUNTIME_PROFILE_ROOFLINE_H
#define MICA_BACKENDS_RUNTIME_PROFILE_ROOFLINE_H

#include "backends/runtime/abi/Device.h"

namespace mica::rt {

/// The share of the peaks that `seconds` for that work amounts to: how much longer than the nearer
/// limit allows it took. Above 1 where the caches hold what is read.
double shareOfRoofline(const Peaks &peaks, double bytes, double flops, double seconds);

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_PROFILE_ROOFLINE_H
