// Reports of a profile: a table, JSON and a trace.
#ifndef MICA_BACKENDS_RUNTIME_PROFILE_PROFILEREPORT_H
#define MICA_BACKENDS_RUNTIME_PROFILE_PROFILEREPORT_H

#include "backends/runtime/profile/Profile.h"
#include "backends/runtime/profile/Roofline.h"
#include "backends/runtime/support/NewFile.h"

#include <map>
#include <nlohmann/json.hpp>

namespace mica::rt {

/// A profiled run of a test.
struct ProfiledRun {
  std::string test;
  const Profile &profile;
  double seconds; ///< of the whole run, including the time between launches
  int64_t tokens;
  Peaks peaks;
};

/// A table of the kernels in descending order of time, the rest, and the total.
std::string profileTable(const ProfiledRun &run);
nlohmann::ordered_json profileJson(const ProfiledRun &run);

/// The profiled program.
struct ProfiledProgram {
  std::string model, weights, kv;
  uint64_t codeHash;                                       ///< The XXH3-64 of its code.
  std::map<std::string, std::vector<std::string>> kernels; ///< locations of kernels; see Manifest
  unsigned threads;
};

/// The version of the format of profile files.
inline constexpr int kProfileVersion = 1;

/// The code hash as text: 16 hexadecimal digits.
std::string codeHashText(uint64_t hash);

/// A file of profiles for `mica explore --profile`: the version, the program, and for each test the
/// result of profileJson with the location of each kernel in the model (`location`).
class ProfileFile {
public:
  static Result<std::unique_ptr<ProfileFile>> create(std::string path, ProfiledProgram program);
  void add(const ProfiledRun &run);
  Status commit();

private:
  ProfileFile(std::unique_ptr<NewFile> file, ProfiledProgram program);

  std::unique_ptr<NewFile> file;
  ProfiledProgram program;
  nlohmann::ordered_json json;
};

/// A trace in Chrome's format (chrome://tracing, ui.perfetto.dev): one process per test, with the
/// launches of the calling thread and the parts run by each thread.
class TraceWriter {
public:
  static Result<std::unique_ptr<TraceWriter>> create(std::string path);
  Status add(const ProfiledRun &run);
  Status commit();

private:
  explicit TraceWriter(std::unique_ptr<NewFile> file) : file(std::move(file)) {}
  Status append(std::string_view text);

  std::unique_ptr<NewFile> file;
  uint64_t size = 0;
  int tests = 0;
};

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_PROFILE_PROFILEREPORT_H
