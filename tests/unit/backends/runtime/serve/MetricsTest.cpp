#include "backends/runtime/serve/Metrics.h"

#include <gmock/gmock.h>

using namespace mica::rt::serve;
using testing::AllOf;
using testing::HasSubstr;

TEST(Metrics, TokensAreCountedAsTheyAreGenerated) {
  Metrics metrics;
  metrics.countFirstToken();
  metrics.countToken(0.5);
  EXPECT_THAT(metrics.text({}), AllOf(HasSubstr("mica_generated_tokens_total 2\n"),
                                      HasSubstr("mica_prompt_tokens_total 0\n"),
                                      HasSubstr("mica_inter_token_latency_seconds_count 1\n")));
  metrics.countPrompt(7, 5);
  EXPECT_THAT(metrics.text({}), AllOf(HasSubstr("mica_prompt_tokens_total 7\n"),
                                      HasSubstr("mica_cached_tokens_total 5\n")));
}

/// Whatever is called how often, a request has one outcome and one time of each kind.
TEST(Metrics, OncePerRequest) {
  Metrics metrics;
  {
    RequestMetrics request(metrics);
    for (int i = 0; i < 3; ++i) {
      request.start();
      request.firstToken();
    }
    request.end(Outcome::Ok);
    request.end(Outcome::Failed);
  }
  {
    RequestMetrics unanswered(metrics);
  }
  RequestMetrics(metrics).end(Outcome::Shutdown);
  const std::string text = metrics.text({});
  for (auto [outcome, count] :
       {std::pair("ok", 1), std::pair("invalid", 0), std::pair("overloaded", 0),
        std::pair("canceled", 0), std::pair("timeout", 0), std::pair("shutdown", 1),
        std::pair("failed", 1)})
    EXPECT_THAT(text, HasSubstr("mica_requests_total{outcome=\"" + std::string(outcome) + "\"} " +
                                std::to_string(count) + "\n"));
  for (const char *name : {"queue_time", "time_to_first_token", "request_duration"})
    EXPECT_THAT(text, HasSubstr("mica_" + std::string(name) + "_seconds_count 1\n"));
}
