// The control groups (cgroups) of this process: where the kernel keeps their limits.
#ifndef MICA_BACKENDS_RUNTIME_SUPPORT_CONTROLGROUPS_H
#define MICA_BACKENDS_RUNTIME_SUPPORT_CONTROLGROUPS_H

#include <string>
#include <vector>

namespace mica::rt {

/// The folders of this process' group and of the ones above it, innermost first, by what is mounted
/// at `root`/proc and `root`/sys. An empty `controller`: those of version 2; else of version 1.
std::vector<std::string> controlGroupFolders(const std::string &root,
                                             const std::string &controller);

/// Without its line end; empty where there is no such file.
std::string firstLine(const std::string &path);

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_SUPPORT_CONTROLGROUPS_H
