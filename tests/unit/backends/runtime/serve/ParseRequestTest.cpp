#include "backends/runtime/serve/ParseRequest.h"
#include "backends/runtime/serve/FieldReader.h"
#include "backends/runtime/serve/MessageReader.h"
#include "tests/unit/backends/runtime/serve/ByteModel.h"

#include <algorithm>
#include <ctime>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace mica::rt::serve;
using mica::test::ByteModel;
using testing::HasSubstr;

namespace {
/// The error of a request, or null.
Json errorOf(const ByteModel &model, Endpoint endpoint, const Json &body) {
  auto parsed = parseCompletionRequest(endpoint, body.dump(), model.served());
  const auto *error = std::get_if<ApiError>(&parsed);
  return error ? error->toJson()["error"] : Json();
}

Json conversation(size_t count) {
  Json messages = Json::array();
  for (size_t i = 0; i < count; ++i)
    messages.push_back(
        {{"role", i % 2 ? "assistant" : "user"}, {"content", "qqqqqqqqqqqqqqqqqqqq"}});
  return messages;
}

/// The processor time of this thread.
double secondsOf(const std::function<void()> &work) {
  auto now = [] {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  };
  double start = now();
  work();
  return now() - start;
}
} // namespace

TEST(ParseRequest, LongConversationsTakeLinearTime) {
  const ByteModel model(1 << 24);
  auto seconds = [&](size_t messages) {
    Json body = {{"messages", conversation(messages)}};
    return secondsOf([&] { EXPECT_EQ(errorOf(model, Endpoint::ChatCompletions, body), Json()); });
  };
  double few = seconds(1000);
  for (int i = 0; i < 4; ++i)
    few = std::min(few, seconds(1000));
  // Quadratic work would take 256 times as long.
  EXPECT_LT(seconds(16000), 64 * few);
}

TEST(ParseRequest, IgnoredValuesAreFound) {
  const ByteModel model(1 << 20);
  Json body = {{"messages", conversation(5)}};
  body["messages"][2]["name"] = "me";
  Json error = errorOf(model, Endpoint::ChatCompletions, body);
  EXPECT_EQ(error["message"],
            "the chat template ignores the \"name\" of a message of the role \"user\" (number 3)");
  EXPECT_EQ(error["param"], "messages");
}

/// The length is known first.
TEST(ParseRequest, PromptsThatAreTooLongAreNotRenderedAgain) {
  const ByteModel model(10);
  Json body = {{"messages", conversation(5)}};
  body["messages"][2]["name"] = "me";
  Json error = errorOf(model, Endpoint::ChatCompletions, body);
  EXPECT_THAT(error["message"], HasSubstr("more than the context of 10 positions"));
  EXPECT_EQ(error["code"], "context_length_exceeded");
}

/// Of a text that is far too long, only a part is encoded.
TEST(ParseRequest, LongTextsAreNotEncodedToTheEnd) {
  const ByteModel model(100);
  auto words = [](size_t count) {
    std::string text;
    while (count-- > 0)
      text += " a";
    return text;
  };
  auto length = [&](const Json &prompt) {
    Json error = errorOf(model, Endpoint::Completions, {{"prompt", prompt}});
    EXPECT_EQ(error["param"], "prompt");
    EXPECT_EQ(error["code"], "context_length_exceeded");
    auto text = error["message"].get<std::string>();
    EXPECT_THAT(text, HasSubstr("more than the context of 100 positions; shorten it"));
    return text.substr(0, text.find(','));
  };
  const size_t each =
      model.served().text->encode(words(2))->size() - model.served().text->encode(words(1))->size();
  EXPECT_EQ(length(words(200 / each)), "the prompt has 200 tokens");
  for (const Json &prompt :
       {Json(words(200 / each + 1)), Json(words(1 << 20)), Json({"a", words(1 << 20)})})
    EXPECT_THAT(length(prompt), testing::MatchesRegex("the prompt has at least 20[1-9] tokens"));
  EXPECT_EQ(length(std::vector<int32_t>(1000, 5)), "the prompt has 1000 tokens");

  const Json message = {{"role", "user"}, {"content", words(1 << 20)}};
  Json error = errorOf(model, Endpoint::ChatCompletions, {{"messages", Json::array({message})}});
  EXPECT_THAT(error["message"], testing::StartsWith("the prompt has at least 20"));
  EXPECT_EQ(error["param"], "messages");
}

TEST(ParseRequest, StopsWhileMessagesAreRead) {
  const ByteModel model(1 << 20);
  std::stop_source stop;
  CompletionRequest request;
  MessageReader reader(model.served(), request, stop.get_token());
  reader.readMessages(conversation(2));
  stop.request_stop();
  EXPECT_THROW(reader.readMessages(conversation(2)), BadRequest);
  EXPECT_THROW(reader.encode(), BadRequest);
  EXPECT_TRUE(request.prompts.empty());
}

TEST(ParseRequest, StopStringsAreShort) {
  const ByteModel model(100);
  auto error = [&](const Json &stop) {
    return errorOf(model, Endpoint::Completions, {{"prompt", "a"}, {"stop", stop}});
  };
  std::string longest;
  for (int i = 0; i < 1024; ++i)
    longest += "é";
  EXPECT_EQ(error(longest), Json());
  EXPECT_EQ(error({"a", longest}), Json());
  for (const Json &stop : {Json(longest + "a"), Json({"a", std::string(1 << 20, 'a')})}) {
    EXPECT_EQ(error(stop)["message"], "a string in 'stop' has more than 1024 characters");
    EXPECT_EQ(error(stop)["param"], "stop");
  }
  std::string schema =
      requestSchema(Endpoint::Completions, model.served())["properties"]["stop"].dump();
  EXPECT_THAT(schema, HasSubstr("\"maxLength\":1024"));
}

TEST(ParseRequest, ErrorsQuoteLittleOfARequest) {
  const ByteModel model(100);
  std::string name = "é";
  while (name.size() < 1 << 20)
    name += name;
  Json error = errorOf(model, Endpoint::Completions, {{"prompt", "a"}, {name, 1}});
  EXPECT_LT(error.dump().size(), 1500u);
  EXPECT_THAT(error["message"], testing::StartsWith("the field 'éé"));
  EXPECT_THAT(error["message"], testing::EndsWith("éé' is not supported; leave it out"));
  EXPECT_THAT(error["param"], HasSubstr("é...é"));
  error = errorOf(model, Endpoint::Completions, {{"prompt", "a"}, {"model", name}});
  EXPECT_LT(error.dump().size(), 1500u);
  EXPECT_THAT(error["message"], HasSubstr("this server serves 'model'"));
}
