#include "backends/runtime/commands/GenerationOptions.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <map>

using namespace mica::rt;
using testing::AllOf;
using testing::Contains;
using testing::Pair;

namespace {
std::multimap<std::string, std::string> describe(const GenerationSettings &settings,
                                                 const Manifest &manifest = Manifest()) {
  auto all = describeSettings(settings, manifest);
  return {all.begin(), all.end()};
}

TEST(GenerationOptions, EachIsDescribed) {
  GenerationSettings settings;
  settings.logitBias = {{4, 1.5f}};
  settings.stops = {"a"};
  Manifest withHead;
  withHead.hidden = 8;
  auto described = describe(settings, withHead);
  CLI::App app;
  app.set_help_flag();
  addSampling(app, settings);
  addStops(app, settings);
  addDrafts(app, settings);
  std::vector<CLI::Option *> options = app.get_options();
  EXPECT_GT(options.size(), 17u);
  for (const CLI::Option *option : options) {
    const std::vector<std::string> &names = option->get_lnames();
    EXPECT_TRUE(std::any_of(names.begin(), names.end(), [&](const std::string &name) {
      return described.count(name) > 0;
    })) << option->get_name();
  }
}

TEST(GenerationOptions, ChangedSettingsAreDescribed) {
  GenerationSettings settings;
  EXPECT_THAT(describe(settings),
              AllOf(Contains(Pair("dry-base", "1.75")), Contains(Pair("dry-allowed-length", "2")),
                    Contains(Pair("dry-penalty-last-n", "-1")),
                    Contains(Pair("dry-sequence-breaker", "\\n")),
                    Contains(Pair("dry-sequence-breaker", "*")),
                    Contains(Pair("xtc-threshold", "0.1")), Contains(Pair("mirostat-ent", "5")),
                    Contains(Pair("mirostat-lr", "0.1"))));
  for (auto [name, value] :
       {std::pair("dry-base", "2.5"), std::pair("dry-allowed-length", "3"),
        std::pair("dry-penalty-last-n", "64"), std::pair("dry-sequence-breaker", "none"),
        std::pair("xtc-threshold", "0.2"), std::pair("mirostat-ent", "4"),
        std::pair("mirostat-lr", "0.25"), std::pair("n", "7"), std::pair("lookup", "3")}) {
    EXPECT_TRUE(changeSetting(settings, name, value)) << name;
    auto described = describe(settings);
    EXPECT_EQ(described.count(name), 1u) << name;
    EXPECT_THAT(described, Contains(Pair(name, value)));
  }
}
} // namespace
