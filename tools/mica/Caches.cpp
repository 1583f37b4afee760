//===- Caches.cpp - mica list and mica rm ---------------------------------===//

#include "tools/mica/Caches.h"

#include "backends/runtime/support/SizeText.h"
#include "tools/hub/HubCache.h"
#include "tools/hub/HubSettings.h"
#include "tools/mica/ProgramCache.h"
#include "tools/support/FileLock.h"
#include "tools/support/Support.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <ctime>

using namespace llvm;

namespace mica::tool {
namespace {

/// Both caches.
struct Caches {
  hub::HubCache models;
  ProgramCache programs;

  static Expected<Caches> locate() {
    Expected<hub::HubSettings> settings = hub::HubSettings::fromEnvironment();
    if (!settings)
      return settings.takeError();
    Expected<ProgramCache> programs = ProgramCache::locate();
    if (!programs)
      return programs.takeError();
    return Caches{hub::HubCache(settings->cacheFolder), std::move(*programs)};
  }
};

} // namespace

static std::string sizeText(uint64_t bytes) { return rt::bytesText(static_cast<double>(bytes)); }

/// As strftime, in UTC or local time.
static std::string timeText(sys::TimePoint<> time, const char *format, bool utc) {
  std::time_t seconds = sys::toTimeT(time);
  std::tm parts = {};
  utc ? gmtime_r(&seconds, &parts) : localtime_r(&seconds, &parts);
  char text[64];
  return {text, std::strftime(text, sizeof text, format, &parts)};
}

static std::string localTime(sys::TimePoint<> time) {
  return timeText(time, "%Y-%m-%d %H:%M", /*utc=*/false);
}

static std::string jsonTime(sys::TimePoint<> time) {
  return timeText(time, "%Y-%m-%dT%H:%M:%SZ", /*utc=*/true);
}

static json::Value jsonList(const Caches &caches) {
  json::Array models, programs;
  for (const hub::CachedModel &model : caches.models.models()) {
    json::Array snapshots;
    for (const hub::CachedSnapshot &snapshot : model.snapshots) {
      json::Array files;
      for (const hub::CachedFile &file : snapshot.files)
        files.push_back(json::Object{{"path", json::fixUTF8(file.path)},
                                     {"bytes", static_cast<int64_t>(file.size)}});
      snapshots.push_back(json::Object{{"commit", snapshot.commit},
                                       {"main", snapshot.isMain},
                                       {"path", json::fixUTF8(snapshot.path)},
                                       {"bytes", static_cast<int64_t>(snapshot.size)},
                                       {"last_use", jsonTime(snapshot.lastUse)},
                                       {"files", std::move(files)}});
    }
    models.push_back(json::Object{{"model", model.repository},
                                  {"unfinished_bytes", static_cast<int64_t>(model.unfinished)},
                                  {"snapshots", std::move(snapshots)}});
  }
  for (const CachedProgram &program : caches.programs.programs())
    programs.push_back(json::Object{{"program", json::fixUTF8(program.name)},
                                    {"path", json::fixUTF8(program.path)},
                                    {"bytes", static_cast<int64_t>(program.bytes)},
                                    {"last_use", jsonTime(program.lastUse)}});
  return json::Object{
      {"models",
       json::Object{{"path", json::fixUTF8(caches.models.path())}, {"list", std::move(models)}}},
      {"programs", json::Object{{"path", json::fixUTF8(caches.programs.path())},
                                {"limit_bytes", static_cast<int64_t>(caches.programs.limit())},
                                {"list", std::move(programs)}}},
      {"version", MICA_VERSION}};
}

namespace {
/// Rows of a list; the column of names is as wide as the longest name.
struct Row {
  std::string name, size, lastUse;
};
} // namespace

static std::string table(ArrayRef<Row> rows) {
  size_t width = 0;
  for (const Row &row : rows)
    width = std::max(width, row.name.size());
  std::string text;
  for (const Row &row : rows)
    text += "  " + row.name + std::string(width - row.name.size(), ' ') +
            formatv(" {0,11}  {1}", row.size, row.lastUse).str() + "\n";
  return text;
}

static std::vector<Row> rowsOf(const hub::CachedModel &model) {
  std::vector<Row> rows;
  for (const hub::CachedSnapshot &snapshot : model.snapshots) {
    std::string old = snapshot.isMain ? "" : " (" + snapshot.commit.substr(0, 8) + ")";
    bool hasGguf = false;
    for (const hub::CachedFile &file : snapshot.files)
      if (StringRef(file.path).ends_with(".gguf")) {
        hasGguf = true;
        rows.push_back({model.repository + ":" + file.path + old, sizeText(file.size),
                        localTime(snapshot.lastUse)});
      }
    if (!hasGguf)
      rows.push_back(
          {model.repository + old, sizeText(snapshot.size), localTime(snapshot.lastUse)});
  }
  if (model.unfinished > 0)
    rows.push_back(
        {model.repository + " (interrupted)", sizeText(model.unfinished), "`mica pull` resumes"});
  return rows;
}

static std::string textList(const Caches &caches) {
  std::vector<Row> models, programs;
  for (const hub::CachedModel &model : caches.models.models())
    append_range(models, rowsOf(model));
  uint64_t bytes = 0;
  std::vector<CachedProgram> cached = caches.programs.programs();
  for (const CachedProgram &program : reverse(cached)) {
    programs.push_back({program.name, sizeText(program.bytes), localTime(program.lastUse)});
    bytes += program.bytes;
  }
  return "models in " + caches.models.path() + (models.empty() ? ": none" : "") + "\n" +
         table(models) + "programs in " + caches.programs.path() + ": " + sizeText(bytes) + " of " +
         sizeText(caches.programs.limit()) + "\n" + table(programs);
}

int runList(const ListArguments &arguments) {
  Expected<Caches> caches = Caches::locate();
  if (!caches)
    return report(caches.takeError());
  return print(arguments.json ? formatv("{0}\n", jsonList(*caches)).str() : textList(*caches));
}

/// Prints the programs, then removes them.
static Error removePrograms(const ProgramCache &cache, ArrayRef<CachedProgram> programs) {
  for (const CachedProgram &program : programs) {
    errs() << "removing " << program.path << " (" << sizeText(program.bytes) << ")\n";
    if (Error error = cache.remove(program))
      return error;
  }
  return Error::success();
}

static Error removeProgram(const ProgramCache &cache, StringRef name) {
  std::vector<CachedProgram> programs = cache.programs();
  // Programs of a model have its name, a dash and their key.
  erase_if(programs, [&](const CachedProgram &program) {
    return program.name != name && StringRef(program.name).rsplit('-').first != name;
  });
  if (programs.empty())
    return createStringError(name + ": is not a compiled program in " + cache.path() +
                             "; see `mica list`");
  return removePrograms(cache, programs);
}

static Error removeModel(const hub::HubCache &cache, StringRef text) {
  Expected<hub::HubName> name = hub::parseHubName(text);
  if (!name)
    return name.takeError();
  Expected<hub::Removal> found = cache.findRemoval(*name);
  if (!found)
    return found.takeError();
  std::string lockFile = cache.lockFile(*name, "mica");
  (void)sys::fs::create_directories(sys::path::parent_path(lockFile));
  std::optional<FileLock> lock = FileLock::take(lockFile, FileLock::Wait::No);
  if (!lock)
    return createStringError(text + ": is being pulled; try again later");
  // The cache may have changed before the lock was taken.
  Expected<hub::Removal> removal = cache.findRemoval(*name);
  if (!removal)
    return removal.takeError();
  errs() << "removing " << (removal->isWhole ? cache.modelFolder(*name) : text.str()) << " ("
         << sizeText(removal->size) << ")\n";
  return cache.remove(*name, *removal);
}

int runRemove(const RemoveArguments &arguments) {
  if (arguments.names.empty() && !arguments.programs)
    return usage("NAME or --programs is required", "mica rm");
  Expected<Caches> caches = Caches::locate();
  if (!caches)
    return report(caches.takeError());
  for (const std::string &name : arguments.names) {
    Error error = StringRef(name).contains('/') ? removeModel(caches->models, name)
                                                : removeProgram(caches->programs, name);
    if (error)
      return report(name, std::move(error));
  }
  if (arguments.programs)
    if (Error error = removePrograms(caches->programs, caches->programs.programs()))
      return report(std::move(error));
  return kDone;
}

} // namespace mica::tool
