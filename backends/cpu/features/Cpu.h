// The instructions that this machine's CPU and OS support. Compiled for baseline x86-64; needs no
// static initializers.
#ifndef MICA_BACKENDS_CPU_FEATURES_CPU_H
#define MICA_BACKENDS_CPU_FEATURES_CPU_H

#include "backends/runtime/support/Result.h"

#include <string>
#include <string_view>
#include <vector>

namespace mica::rt {

/// Whether `name`, an LLVM target feature without its sign ("avx512bf16"), can be checked here. The
/// compiler only lists such features in manifests, because programs reject unknown ones.
bool knownCpuFeature(std::string_view name);

/// Whether CPU and operating system support the feature; false for unknown names. For AMX features,
/// requests the permission of the operating system to use tiles.
bool cpuHas(std::string_view name);

/// The CPU's brand string, such as "AMD EPYC 9755", or "this CPU".
std::string cpuName();

/// Succeeds if all `features` are available; else an error that names the target and the missing
/// features, without those that imply another missing one.
Status checkCpu(const std::string &target, const std::vector<std::string> &features);

} // namespace mica::rt

#endif // MICA_BACKENDS_CPU_FEATURES_CPU_H
