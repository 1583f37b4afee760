#include "backends/runtime/profile/ProfileReport.h"
#include "backends/runtime/support/Output.h"
#include "backends/runtime/support/SizeText.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace mica::rt {

namespace {
using Json = nlohmann::ordered_json;

/// A line of the table: a kernel, or the total.
struct Line {
  std::string name;
  int64_t launches;
  double seconds, busySeconds;
  Work work;
  double exchangedBytes;
};

/// Kernels in descending order of time.
std::vector<Line> sortedLines(const ProfiledRun &run) {
  std::vector<Line> lines;
  for (const Profile::Entry &entry : run.profile.entries())
    lines.push_back({entry.name, entry.launches, entry.seconds, entry.busySeconds, entry.work,
                     entry.exchangedBytes});
  std::sort(lines.begin(), lines.end(),
            [](const Line &a, const Line &b) { return a.seconds > b.seconds; });
  return lines;
}

Line total(const ProfiledRun &run, const std::vector<Line> &lines) {
  Line sum{"total", 0, run.seconds, 0, {}, 0};
  for (const Line &line : lines) {
    sum.launches += line.launches;
    sum.busySeconds += line.busySeconds;
    sum.work.bytes += line.work.bytes;
    sum.work.flops += line.work.flops;
  }
  return sum;
}

/// The time of the calling thread between launches.
double restSeconds(const ProfiledRun &run, const std::vector<Line> &lines) {
  double rest = run.seconds;
  for (const Line &line : lines)
    rest -= line.seconds;
  return std::max(0.0, rest);
}

double perSecond(double amount, double seconds) { return seconds > 0 ? amount / seconds : 0; }

__attribute__((format(printf, 1, 2))) std::string format(const char *words, ...) {
  char line[320];
  va_list arguments;
  va_start(arguments, words);
  std::vsnprintf(line, sizeof line, words, arguments);
  va_end(arguments);
  return line;
}

/// The fraction of the roofline limit; above 1 if data is read from caches, or if the measured
/// compute peak is too low.
double limitShare(const ProfiledRun &run, const Line &line) {
  return shareOfRoofline(run.peaks, line.work.bytes, line.work.flops, line.seconds);
}

std::string row(const ProfiledRun &run, const Line &line) {
  std::string text = format("  %-34s %8lld %10.3f %6.1f %9.2f", line.name.c_str(),
                            static_cast<long long>(line.launches), line.seconds * 1e3,
                            100 * perSecond(line.seconds, run.seconds),
                            1e6 * perSecond(line.seconds, static_cast<double>(line.launches)));
  // Neither exchanges nor kernels without matmuls and weights have a limit to be compared with.
  if (line.exchangedBytes > 0)
    text += format(" %8.2f %8s %8s", 1e-9 * perSecond(line.exchangedBytes, line.seconds), "-", "-");
  else if (line.work.bytes > 0 || line.work.flops > 0)
    text += format(" %8.2f %8.1f %8.1f", 1e-9 * perSecond(line.work.bytes, line.seconds),
                   1e-9 * perSecond(line.work.flops, line.seconds), 100 * limitShare(run, line));
  else
    text += format(" %8s %8s %8s", "-", "-", "-");
  return text;
}

double busyShare(const ProfiledRun &run, const Line &line) {
  return perSecond(line.busySeconds, line.seconds * run.profile.threads());
}

Json describe(const ProfiledRun &run, const Line &line) {
  Json json = {{"kernel", line.name},
               {"launches", line.launches},
               {"seconds", line.seconds},
               {"share", perSecond(line.seconds, run.seconds)},
               {"bytes", line.work.bytes},
               {"flops", line.work.flops},
               {"gb_per_s", 1e-9 * perSecond(line.work.bytes, line.seconds)},
               {"gflop_per_s", 1e-9 * perSecond(line.work.flops, line.seconds)},
               {"roofline", limitShare(run, line)},
               {"busy", busyShare(run, line)}};
  if (line.exchangedBytes > 0)
    json["exchanged_bytes"] = line.exchangedBytes;
  return json;
}
} // namespace

std::string profileTable(const ProfiledRun &run) {
  std::vector<Line> lines = sortedLines(run);
  Line all = total(run, lines);
  double tokens = static_cast<double>(run.tokens);
  std::string text =
      format("profile of %s: %s of the model; per token %.2f parallel regions and %.3f MB of "
             "weights and caches\n"
             "limits: %.1f GB/s read, %.0f GFLOP/s (%s)\n",
             run.test.c_str(), countText(run.profile.calls(), "call").c_str(),
             static_cast<double>(run.profile.forks()) / tokens, all.work.bytes / tokens * 1e-6,
             run.peaks.bytesPerSecond * 1e-9, run.peaks.flopsPerSecond * 1e-9,
             run.peaks.instruction.c_str());
  text += format("  %-34s %8s %10s %6s %9s %8s %8s %8s %6s\n", "kernel", "launches", "ms", "%",
                 "us each", "GB/s", "GFLOP/s", "limit %", "busy %");
  for (const Line &line : lines)
    text += row(run, line) + format(" %6.1f\n", 100 * busyShare(run, line));
  double rest = restSeconds(run, lines);
  text += format("  %-34s %8s %10.3f %6.1f\n", "rest", "", rest * 1e3,
                 100 * perSecond(rest, run.seconds));
  text += row(run, all) + format(" %6.1f\n", 100 * busyShare(run, all));
  lines.push_back(all);
  auto exceeds = [&](bool countsBytes, bool countsFlops) {
    return std::any_of(lines.begin(), lines.end(), [&](const Line &line) {
      return shareOfRoofline(run.peaks, countsBytes ? line.work.bytes : 0,
                             countsFlops ? line.work.flops : 0, line.seconds) > 1;
    });
  };
  if (exceeds(/*countsBytes=*/true, /*countsFlops=*/false))
    text +=
        "limit % above 100: the bytes came from the processor's caches, while the limit is that "
        "of memory\n";
  if (exceeds(/*countsBytes=*/false, /*countsFlops=*/true))
    text +=
        "limit % above 100: the compute limit is too low; if it was measured, the machine was busy "
        "or changed its clock, see --peak-gflop\n";
  return text;
}

nlohmann::ordered_json profileJson(const ProfiledRun &run) {
  std::vector<Line> lines = sortedLines(run);
  Line all = total(run, lines);
  double tokens = static_cast<double>(run.tokens);
  Json kernels = Json::array();
  for (const Line &line : lines)
    kernels.push_back(describe(run, line));
  return {{"seconds", run.seconds},
          {"calls", run.profile.calls()},
          {"regions_per_token", static_cast<double>(run.profile.forks()) / tokens},
          {"bytes_per_token", all.work.bytes / tokens},
          {"limits",
           {{"gb_per_s", run.peaks.bytesPerSecond * 1e-9},
            {"gflop_per_s", run.peaks.flopsPerSecond * 1e-9},
            {"instruction", run.peaks.instruction}}},
          {"kernels", kernels},
          {"rest_seconds", restSeconds(run, lines)},
          {"roofline", limitShare(run, all)}};
}

std::string codeHashText(uint64_t hash) {
  return format("%016llx", static_cast<unsigned long long>(hash));
}

static constexpr std::string_view kProfileOpening = "{\"mica_profile\":";

ProfileFile::ProfileFile(std::unique_ptr<NewFile> file, ProfiledProgram program)
    : file(std::move(file)), program(std::move(program)) {
  json = {{"mica_profile", kProfileVersion},
          {"program",
           {{"model", this->program.model},
            {"weights", this->program.weights},
            {"kv", this->program.kv},
            {"code", codeHashText(this->program.codeHash)}}},
          {"threads", this->program.threads},
          {"tests", Json::array()}};
}

Result<std::unique_ptr<ProfileFile>> ProfileFile::create(std::string path,
                                                         ProfiledProgram program) {
  Result<std::unique_ptr<NewFile>> file =
      NewFile::create(std::move(path), {"the profile", "profile of a program", kProfileOpening});
  if (!file)
    return file.error();
  return std::unique_ptr<ProfileFile>(new ProfileFile(*std::move(file), std::move(program)));
}

void ProfileFile::add(const ProfiledRun &run) {
  Json test = {{"test", run.test}, {"tokens", run.tokens}};
  test.update(profileJson(run));
  for (Json &kernel : test["kernels"]) {
    auto places = program.kernels.find(kernel["kernel"].get<std::string>());
    kernel["location"] =
        places != program.kernels.end() ? Json(places->second) : Json(Json::array());
  }
  json["tests"].push_back(std::move(test));
}

Status ProfileFile::commit() {
  std::string text = toJsonText(json) + "\n";
  if (Status written = file->writeAt(text.data(), text.size(), 0); !written)
    return written;
  return file->commit();
}

Result<std::unique_ptr<TraceWriter>> TraceWriter::create(std::string path) {
  constexpr std::string_view opening = "{\"traceEvents\":[\n";
  Result<std::unique_ptr<NewFile>> file =
      NewFile::create(std::move(path), {"the trace", "trace of a program", opening});
  if (!file)
    return file.error();
  std::unique_ptr<TraceWriter> writer(new TraceWriter(*std::move(file)));
  if (Status begun = writer->append(opening); !begun)
    return begun.error();
  return writer;
}

Status TraceWriter::append(std::string_view text) {
  Status done = file->writeAt(text.data(), text.size(), size);
  size += text.size();
  return done;
}

Status TraceWriter::add(const ProfiledRun &run) {
  const std::vector<Profile::Span> &spans = run.profile.spans();
  Profile::Clock::time_point first = Profile::Clock::time_point::max();
  for (const Profile::Span &span : spans)
    first = std::min(first, span.begin);
  auto micros = [](auto duration) {
    return std::chrono::duration<double, std::micro>(duration).count();
  };
  int process = ++tests;
  std::string text = process > 1 ? ",\n" : "";
  auto name = [&](const char *what, int thread, const std::string &value) {
    return toJsonText({{"name", what},
                       {"ph", "M"},
                       {"pid", process},
                       {"tid", thread},
                       {"args", {{"name", value}}}});
  };
  text += name("process_name", 0, run.test) + ",\n" + name("thread_name", 0, "launches");
  for (unsigned thread = 1; thread <= run.profile.threads(); ++thread)
    text += ",\n" +
            name("thread_name", static_cast<int>(thread), "thread " + std::to_string(thread - 1));
  for (const Profile::Span &span : spans) {
    std::string kernel =
        span.entry < 0 ? "call" : run.profile.entries()[static_cast<size_t>(span.entry)].name;
    Json event = {{"name", kernel},
                  {"ph", "X"},
                  {"pid", process},
                  {"tid", span.thread},
                  {"ts", micros(span.begin - first)},
                  {"dur", micros(span.end - span.begin)}};
    if (span.exchangedBytes > 0)
      event["args"] = {{"exchanged_bytes", span.exchangedBytes}};
    else if (span.thread == 0)
      event["args"] = {{"rows", span.rows}, {"bytes", span.work.bytes}, {"flops", span.work.flops}};
    text += ",\n" + toJsonText(event);
    // Write in pieces, because a trace of many tokens is large.
    if (text.size() > (1u << 20)) {
      if (Status done = append(text); !done)
        return done;
      text.clear();
    }
  }
  return append(text);
}

Status TraceWriter::commit() {
  if (Status ended = append("\n]}\n"); !ended)
    return ended;
  return file->commit();
}

} // namespace mica::rt
