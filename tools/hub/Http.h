//===- Http.h - GET by libcurl ----------------------------------*- C++ -*-===//
#ifndef MICA_TOOLS_HUB_HTTP_H
#define MICA_TOOLS_HUB_HTTP_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <memory>
#include <string>

namespace mica::hub {

/// A failure after which the same may succeed: a connection that was cut, a server that is busy.
class TransientError : public llvm::ErrorInfo<TransientError> {
public:
  static char ID;
  TransientError(std::string message, unsigned waitSeconds)
      : message(std::move(message)), waitSeconds(waitSeconds) {}
  void log(llvm::raw_ostream &stream) const override { stream << message; }
  std::error_code convertToErrorCode() const override { return llvm::inconvertibleErrorCode(); }

  std::string message;  ///< one line, without what to do
  unsigned waitSeconds; ///< what the server asked for (Retry-After); 0: nothing
};

/// How a response begins, after all redirects.
struct HttpHead {
  long status = 0;
  llvm::StringMap<std::string> headers; ///< names in lower case; x-linked-* of redirects as well

  /// The header's value; empty where it is absent.
  llvm::StringRef header(llvm::StringRef name) const {
    auto found = headers.find(name);
    return found == headers.end() ? llvm::StringRef() : llvm::StringRef(found->second);
  }
};

/// Sends requests one after the other, over connections that stay open.
class HttpClient {
public:
  /// `token` is sent to the scheme, host and port of `endpoint` only. A transfer that stalls for
  /// `stallSeconds` has failed.
  HttpClient(std::string endpoint, std::string token, unsigned stallSeconds);
  ~HttpClient();
  HttpClient(const HttpClient &) = delete;
  HttpClient &operator=(const HttpClient &) = delete;

  using OnHead = llvm::function_ref<llvm::Error(const HttpHead &head)>;
  using OnBytes = llvm::function_ref<llvm::Error(llvm::ArrayRef<uint8_t> bytes)>;

  /// Asks for the bytes of `url` from byte `from` on; follows redirects. Where it succeeds (2xx),
  /// `onHead` and then, for each piece of the body, `onBytes` are called; their errors end the
  /// transfer. Other responses are returned without their body, but those that may change with
  /// time (408, 429, 5xx) are a TransientError, as is a connection that fails after the endpoint
  /// has once answered.
  llvm::Expected<HttpHead> get(llvm::StringRef url, uint64_t from, OnHead onHead, OnBytes onBytes);

  /// Calls `attempt` until it succeeds or fails with another error than TransientError. Waits
  /// before each repetition, calling `waiting` with the reason; gives up after several in a row
  /// between which `progress` did not grow, or when asked to wait for longer than minutes.
  static llvm::Error retry(llvm::function_ref<llvm::Error()> attempt,
                           llvm::function_ref<uint64_t()> progress,
                           llvm::function_ref<void(llvm::StringRef reason)> waiting);

private:
  struct Transfer;
  llvm::Expected<HttpHead> request(const std::string &url, uint64_t from, OnHead onHead,
                                   OnBytes onBytes);

  struct Curl;
  std::unique_ptr<Curl> curl;
  std::string endpoint, token;
  unsigned stallSeconds;
  bool hasAnswered = false;
};

/// `text` as a part of a URL's path: all but letters, digits, `-._~` and slashes is escaped.
std::string escapePath(llvm::StringRef text);

/// The URL of the next page that a Link header names; empty: there is none.
llvm::StringRef nextPage(llvm::StringRef link);

} // namespace mica::hub

#endif // MICA_TOOLS_HUB_HTTP_H
