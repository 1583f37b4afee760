#include "tests/unit/backends/runtime/program/TestPrograms.h"

#include "backends/runtime/support/SignalCleanup.h"

#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <functional>
#include <gmock/gmock.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace mica;
using namespace mica::program;
using namespace mica::test;
using testing::HasSubstr;

namespace {
class ProgramWriterTest : public testing::Test {
protected:
  TestFolder folder;
  std::string path = folder.file("program");

  static std::string errorOfCreate(const std::string &target,
                                   const std::string &launcher = "/proc/self/exe") {
    auto writer = ProgramWriter::create(target, launcher);
    return writer ? "no error" : writer.error().message;
  }
  /// The temporary file of process `pid` for `name`.
  std::string temporaryOf(const std::string &name, pid_t pid) const {
    return folder.file("." + name + ".mica-" + std::to_string(pid) + ".tmp");
  }
};

TEST_F(ProgramWriterTest, ReplacesAnOldProgramAndMakesItExecutable) {
  writeTestProgram(path, /*tokenizer=*/false);
  chmod(path.c_str(), 0600);
  writeTestProgram(path);
  EXPECT_EQ(folder.entries(), 1u);
  struct stat info;
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0755u);
  EXPECT_TRUE(ProgramFile::open(path));
}

TEST_F(ProgramWriterTest, ManySmallPiecesEqualOneLarge) {
  std::string weights;
  for (int i = 0; i < 3000000; ++i)
    weights += static_cast<char>(i * 2654435761u >> 24);
  auto writer = ProgramWriter::create(path, "/proc/self/exe");
  ASSERT_TRUE(writer);
  ASSERT_TRUE((*writer)->begin(SectionKind::Weights));
  for (size_t at = 0, size = 1; at < weights.size(); at += size, size = size * 3 % 100003 + 1)
    ASSERT_TRUE(
        (*writer)->append(bytesOf(weights).subspan(at, std::min(size, weights.size() - at))));
  EXPECT_EQ((*writer)->sectionSize(), weights.size());
  ASSERT_TRUE((*writer)->end());
  ASSERT_TRUE((*writer)->add(SectionKind::Code, bytesOf(testCode)));
  ASSERT_TRUE((*writer)->add(SectionKind::Manifest, bytesOf(testManifest)));
  ASSERT_TRUE((*writer)->commit());
  auto file = ProgramFile::open(path);
  ASSERT_TRUE(file) << file.error().message;
  auto read = file->read(SectionKind::Weights);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(std::string(reinterpret_cast<const char *>(read->data()), read->size()), weights);
}

TEST_F(ProgramWriterTest, LargeWeightsAreAlignedToHugePages) {
  for (uint64_t size : {8 * rt::hugePage - 1, 8 * rt::hugePage, 8 * rt::hugePage + 4711}) {
    auto writer = ProgramWriter::create(path, "/proc/self/exe");
    ASSERT_TRUE(writer);
    std::string weights(size, 'a');
    for (size_t at = 0; at < size; at += 4096 - 1)
      weights[at] = static_cast<char>(at * 2654435761u >> 24);
    bool large = size >= 8 * rt::hugePage;
    ASSERT_TRUE((*writer)->add(SectionKind::Code, bytesOf(testCode)));
    ASSERT_TRUE((*writer)->begin(SectionKind::Weights, size));
    // Not in pieces of a huge page: the writer splits it.
    for (size_t at = 0, piece = 5 << 20; at < size; at += piece) {
      ASSERT_TRUE((*writer)->append(bytesOf(weights).subspan(at, std::min(piece, size - at))));
      if (large)
        EXPECT_EQ(std::filesystem::file_size(temporaryOf("program", getpid())) % rt::hugePage, 0u);
    }
    ASSERT_TRUE((*writer)->end());
    ASSERT_TRUE((*writer)->add(SectionKind::Manifest, bytesOf(testManifest)));
    ASSERT_TRUE((*writer)->commit());
    auto file = ProgramFile::open(path);
    ASSERT_TRUE(file) << file.error().message;
    const Section *code = file->layout().find(SectionKind::Code);
    uint64_t offset = file->layout().find(SectionKind::Weights)->offset;
    EXPECT_EQ(offset, alignTo(code->offset + code->size, large ? rt::hugePage : pageSize));
    for (bool readByHugePages : {false, true}) {
      auto mapped = file->map(SectionKind::Weights, readByHugePages);
      ASSERT_TRUE(mapped) << mapped.error().message;
      const std::byte *data = mapped->bytes().data();
      EXPECT_EQ(std::string(reinterpret_cast<const char *>(data), mapped->bytes().size()), weights);
      if (large)
        EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % rt::hugePage, 0u);
      EXPECT_LE(rt::bytesInHugePages(data), size);
    }
  }
}

TEST_F(ProgramWriterTest, FileIsRemovedWithoutCommit) {
  writeTestProgram(path);
  std::string old = contents(path);
  {
    auto writer = ProgramWriter::create(path, "/proc/self/exe");
    ASSERT_TRUE(writer);
    ASSERT_TRUE((*writer)->add(SectionKind::Code, bytesOf(testCode)));
    EXPECT_EQ(folder.entries(), 2u);
  }
  EXPECT_EQ(folder.entries(), 1u);
  EXPECT_EQ(contents(path), old);
}

TEST_F(ProgramWriterTest, KeepsFilesOtherThanPrograms) {
  std::string refused =
      "cannot be written (it exists and is not a Mica program); remove it or choose another -o";
  writeTestProgram(path);
  std::string program = contents(path);
  for (const std::string &text : {std::string("x"), std::string("MICATAIL"), program + "x",
                                  program.substr(0, program.size() / 2)}) {
    std::ofstream(path, std::ios::binary) << text;
    EXPECT_EQ(errorOfCreate(path), refused);
    EXPECT_EQ(contents(path), text);
  }
  // A temporary file without a name is allowed.
  std::ofstream(path, std::ios::trunc).flush();
  EXPECT_EQ(errorOfCreate(path), "no error");
}

TEST_F(ProgramWriterTest, ImpossibleTargets) {
  auto because = [](const std::string &reason) {
    return "cannot be written (" + reason + "); choose another -o";
  };
  EXPECT_EQ(errorOfCreate(folder.file("")), because("it does not name a file"));
  mkdir(folder.file("d").c_str(), 0755);
  EXPECT_EQ(errorOfCreate(folder.file("d")), because("it is a directory"));
  EXPECT_EQ(errorOfCreate("/dev/null"), because("/dev cannot hold regular files"));
  EXPECT_EQ(errorOfCreate("/proc/program"), because("/proc cannot hold regular files"));
  EXPECT_EQ(errorOfCreate(folder.file("absent/program")),
            "cannot be written (its folder does not exist); create it or choose another -o");
  EXPECT_THAT(errorOfCreate(path, folder.file("absent")),
              HasSubstr("No such file or directory; install Mica again"));
  EXPECT_EQ(folder.entries(), 1u) << "the folder d";
}

/// Runs `body` in a child process; returns its exit status, or 1000 + the signal that ended it.
int inChild(const std::function<int()> &body) {
  pid_t child = fork();
  if (child == 0)
    _exit(body());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

TEST_F(ProgramWriterTest, ReadOnlyFolder) {
  chmod(folder.file("").c_str(), 0555);
  int status = inChild([&] {
    // Root may write everywhere: become nobody.
    if (geteuid() == 0 && setuid(65534) != 0)
      return 2;
    std::string error = errorOfCreate(path);
    return error == "cannot be written (Permission denied); choose another -o" ? 0 : 1;
  });
  EXPECT_EQ(status, 0);
  chmod(folder.file("").c_str(), 0755);
}

TEST_F(ProgramWriterTest, FullDiskIsAnErrorAndLeavesNothing) {
  // A limit on the file's size fails writes like a full disk.
  int status = inChild([&] {
    std::signal(SIGXFSZ, SIG_IGN);
    auto writer = ProgramWriter::create(path, "/proc/self/exe");
    rlimit limit{4 << 20, 4 << 20};
    setrlimit(RLIMIT_FSIZE, &limit);
    std::string weights(64 << 20, 'w');
    rt::Status done =
        writer ? (*writer)->add(SectionKind::Weights, bytesOf(weights)) : rt::Status();
    return done || done.error().message.find(
                       "cannot be written (File too large); raise the limit (ulimit -f) or ") ==
                       std::string::npos;
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(folder.entries(), 0u);
}

TEST_F(ProgramWriterTest, AFileCutWithinTheLauncherDoesNotStart) {
  writeTestProgram(path);
  std::string bytes = contents(path), launcher = contents("/proc/self/exe");
  // Any program with a launcher starts; the launcher checks the rest.
  size_t header = bytes.find("MICAPROG", launcher.size());
  ASSERT_NE(header, std::string::npos);
  for (size_t size : {size_t(5000), launcher.size() / 2, launcher.size() - 1, header + 100}) {
    std::ofstream(path, std::ios::binary) << bytes.substr(0, size);
    int status = inChild([&] {
      execl(path.c_str(), path.c_str(), "--gtest_list_tests", nullptr);
      return errno == EIO ? 3 : 4;
    });
    EXPECT_EQ(status, 3) << size << " bytes";
  }
  std::ofstream(path, std::ios::binary) << bytes;
  int status = inChild([&] {
    std::freopen("/dev/null", "w", stdout);
    execl(path.c_str(), path.c_str(), "--gtest_list_tests", nullptr);
    return 4;
  });
  EXPECT_EQ(status, 0);
}

TEST_F(ProgramWriterTest, SignalsRemoveTheTemporary) {
  for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGXCPU}) {
    int status = inChild([&] {
      rlimit noCore{0, 0};
      setrlimit(RLIMIT_CORE, &noCore);
      auto writer = ProgramWriter::create(path, "/proc/self/exe");
      if (!writer || folder.entries() != 1)
        return 1;
      raise(signal);
      return 2;
    });
    EXPECT_EQ(status, 1000 + signal);
    EXPECT_EQ(folder.entries(), 0u);
  }
}

TEST_F(ProgramWriterTest, AnEarlierHandlerRunsAfterTheRemoval) {
  // Like LLVM's handlers, which remove LLVM's own temporary files. In a separate process, in which
  // the handler is installed first.
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  static std::string watched;
  watched = folder.file("");
  auto leave = [](int) {
    bool removed = std::filesystem::is_empty(watched);
    std::filesystem::remove_all(watched);
    _exit(removed ? 7 : 8);
  };
  auto interrupted = [&] {
    std::signal(SIGTERM, leave);
    auto writer = ProgramWriter::create(path, "/proc/self/exe");
    if (writer && folder.entries() == 1)
      raise(SIGTERM);
  };
  EXPECT_EXIT(interrupted(), testing::ExitedWithCode(7), "");
}

TEST_F(ProgramWriterTest, IgnoredSignalsStayIgnored) {
  int status = inChild([&] {
    std::signal(SIGHUP, SIG_IGN);
    auto writer = ProgramWriter::create(path, "/proc/self/exe");
    raise(SIGHUP);
    return folder.entries() == 1 ? 0 : 1;
  });
  EXPECT_EQ(status, 0);
}

TEST_F(ProgramWriterTest, NonRegularFilesAreKept) {
  ASSERT_EQ(mkfifo(folder.file("pipe").c_str(), 0600), 0);
  EXPECT_EQ(errorOfCreate(folder.file("pipe")),
            "cannot be written (it is not a regular file); choose another -o");
  writeTestProgram(path);
  std::string refused = "cannot be written (it is a symbolic link, which is not followed); name "
                        "the file itself or choose another -o";
  for (const char *name : {"program", "absent"}) {
    ASSERT_EQ(symlink(name, folder.file("link").c_str()), 0);
    EXPECT_EQ(errorOfCreate(folder.file("link")), refused) << name;
    EXPECT_TRUE(std::filesystem::is_symlink(folder.file("link")));
    unlink(folder.file("link").c_str());
  }
}

/// A process that has ended.
pid_t deadProcess() {
  pid_t child = fork();
  if (child == 0)
    _exit(0);
  waitpid(child, nullptr, 0);
  return child;
}

TEST_F(ProgramWriterTest, TemporaryFilesOfDeadProcessesAreRemoved) {
  pid_t dead = deadProcess();
  auto make = [&](const std::string &file) {
    std::ofstream(file) << "half a program";
    return file;
  };
  std::string stale = make(temporaryOf("program", dead)), number = std::to_string(dead);
  std::string own = make(temporaryOf("program", getppid()));
  // Not temporary files of the target: another target's, and names that a user may have chosen.
  std::vector<std::string> others = {make(temporaryOf("other", dead)),
                                     make(folder.file(".program.mica-.tmp")),
                                     make(folder.file(".program.mica-" + number + "x.tmp")),
                                     make(folder.file(".program.mica-0.tmp")),
                                     make(folder.file("program.tmp-" + number)),
                                     make(folder.file("program.mica-" + number + ".tmp"))};
  // Like a process of another container, whose number has no meaning here.
  std::string locked = make(temporaryOf("program", deadProcess()));
  int lock = open(locked.c_str(), O_RDONLY);
  ASSERT_EQ(flock(lock, LOCK_EX), 0);
  std::string linked = temporaryOf("program", deadProcess());
  ASSERT_EQ(symlink("program.tmp-0", linked.c_str()), 0);
  writeTestProgram(path);
  EXPECT_FALSE(std::filesystem::exists(stale));
  EXPECT_TRUE(std::filesystem::exists(own));
  EXPECT_TRUE(std::filesystem::exists(locked));
  EXPECT_TRUE(std::filesystem::is_symlink(linked));
  for (const std::string &other : others)
    EXPECT_TRUE(std::filesystem::exists(other)) << other;
  close(lock);
  writeTestProgram(path);
  EXPECT_FALSE(std::filesystem::exists(locked));
}

TEST_F(ProgramWriterTest, FoldersOfDeadProcessesAreRemoved) {
  auto name = [&](pid_t pid) { return temporaryOf("scratch", pid); };
  pid_t dead = deadProcess();
  mkdir(name(dead).c_str(), 0700);
  std::ofstream(name(dead) + "/program") << "half a program";
  mkdir(name(getppid()).c_str(), 0700);
  {
    auto made = rt::TemporaryFolder::create(folder.file("."), "scratch");
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_EQ(std::filesystem::weakly_canonical((*made)->path()),
              std::filesystem::weakly_canonical(name(getpid())));
    std::ofstream((*made)->path() + "/program") << "half a program";
    EXPECT_FALSE(std::filesystem::exists(name(dead)));
    // It is in use, also by the same process.
    auto second = rt::TemporaryFolder::create(folder.file("."), "scratch");
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().message, "File exists");
    EXPECT_TRUE(std::filesystem::exists((*made)->path() + "/program"));
  }
  EXPECT_FALSE(std::filesystem::exists(name(getpid())));
  EXPECT_TRUE(std::filesystem::exists(name(getppid())));
}

TEST_F(ProgramWriterTest, ASignalRemovesAFolderAndItsProtectedFile) {
  inChild([&] {
    auto made = rt::TemporaryFolder::create(folder.file("."), "scratch");
    std::string file = made ? (*made)->path() + "/program" : "";
    rt::protectTemporary(file);
    std::ofstream(file) << "half a program";
    raise(SIGTERM);
    return 0;
  });
  EXPECT_EQ(folder.entries(), 0u);
}

TEST_F(ProgramWriterTest, ErrorsNameTheHintOfTheCaller) {
  auto writer = ProgramWriter::create(folder.file("d/program"), "/proc/self/exe", "set TMPDIR");
  ASSERT_FALSE(writer);
  EXPECT_EQ(writer.error().message,
            "cannot be written (its folder does not exist); create it or set TMPDIR");
}

TEST_F(ProgramWriterTest, ALinkUnderTheTemporaryNameIsNotFollowed) {
  std::ofstream(folder.file("notes")) << "notes";
  ASSERT_EQ(symlink("notes", temporaryOf("program", getpid()).c_str()), 0);
  writeTestProgram(path);
  EXPECT_EQ(contents(folder.file("notes")), "notes");
}

TEST_F(ProgramWriterTest, MisuseIsAnError) {
  auto writer = ProgramWriter::create(path, "/proc/self/exe");
  ASSERT_TRUE(writer);
  EXPECT_FALSE((*writer)->append(bytesOf("x")));
  EXPECT_FALSE((*writer)->end());
  ASSERT_TRUE((*writer)->begin(SectionKind::Code));
  EXPECT_FALSE((*writer)->begin(SectionKind::Weights));
  EXPECT_FALSE((*writer)->commit());
}
} // namespace
