// Comparison of measured times with the roofline model.
#ifndef MICA_BACKENDS_RUNTIME_PROFILE_ROOFLINE_H
#define MICA_BACKENDS_RUNTIME_PROFILE_ROOFLINE_H

#include "backends/runtime/abi/Device.h"

namespace mica::rt {

/// The fraction of the roofline limit that is reached: the time that the work would take at the
/// limiting peak rate, divided by `seconds`. Above 1 if data is read from caches, or if the
/// measured peaks are too low.
double shareOfRoofline(const Peaks &peaks, double bytes, double flops, double seconds);

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_PROFILE_ROOFLINE_H
