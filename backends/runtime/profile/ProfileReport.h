// A profile as a table, as JSON and as a trace.
#ifndef MICA_BACKENDS_RUNTIME_PROFILE_PROFILEREPORT_H
#define MICA_BACKENDS_RUNTIME_PROFILE_PROFILEREPORT_H

#include "backends/runtime/profile/Profile.h"
#include "backends/runtime/profile/Roofline.h"
#include "backends/runtime/support/NewFile.h"

#include <map>
#include <nlohmann/json.hpp>

namespace mica::rt {

/// A run of a test under a profile.
struct ProfiledRun {
  std::string test;
  const Profile &profile;
  double seconds; ///< Of the whole run, including the time between launches.
  int64_t tokens;
  Peaks peaks;
};

/// Kernels by their time, then what is left, then all together.
std::string profileTable(const ProfiledRun &run);
nlohmann::ordered_json profileJson(const ProfiledRun &run);

/// The program that a profile is of.
struct ProfiledProgram {
  std::string model, weights, kv;
  uint64_t codeHash;                                       ///< The XXH3-64 of its code.
  std::map<std::string, std::vector<std::string>> kernels; ///< Their places: see Manifest.
  unsigned threads;
};

/// The version of the format of profile files.
inline constexpr int kProfileVersion = 1;

/// What `codeHash` is in the file: 16 hexadecimal digits.
std::string codeHashText(uint64_t hash);

/// A file of profiles, for `mica explore --profile`: the version, the program, and for each test
/// what `profileJson` says of it, with the places of each kernel in the model (`location`).
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

/// A trace in Chrome's format (chrome://tracing, ui.perfetto.dev): a process per test, in it the
/// calling thread's launches and the parts that each thread has run.
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
