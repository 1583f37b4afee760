// The control groups (cgroups) of this process, which limit its resources.
#ifndef MICA_BACKENDS_RUNTIME_SUPPORT_CONTROLGROUPS_H
#define MICA_BACKENDS_RUNTIME_SUPPORT_CONTROLGROUPS_H

#include <string>
#include <vector>

namespace mica::rt {

/// The folders of this process' control group and of its ancestors, innermost first. Reads
/// `root`/proc and `root`/sys. `controller` is empty for version 2, else a controller of version 1.
std::vector<std::string> controlGroupFolders(const std::string &root,
                                             const std::string &controller);

/// The first line of a file without its newline; empty if there is no such file.
std::string firstLine(const std::string &path);

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_SUPPORT_CONTROLGROUPS_H
