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

/// A failure after which a retry may succeed: an interrupted connection, a busy server.
class TransientError : public llvm::ErrorInfo<TransientError> {
public:
  static char ID;
  TransientError(std::string message, unsigned waitSeconds)
      : message(std::move(message)), waitSeconds(waitSeconds) {}
  void log(llvm::raw_ostream &stream) const override { stream << message; }
  std::error_code convertToErrorCode() const override { return llvm::inconvertibleErrorCode(); }

  std::string message;  ///< one line, without hint
  unsigned waitSeconds; ///< requested by the server (Retry-After); 0: not
};

/// The status and headers of a response, after all redirects.
struct HttpHead {
  long status = 0;
  llvm::StringMap<std::string> headers; ///< names in lower case; x-linked-* also of redirects

  /// The header's value; empty if absent.
  llvm::StringRef header(llvm::StringRef name) const {
    auto found = headers.find(name);
    return found == headers.end() ? llvm::StringRef() : llvm::StringRef(found->second);
  }
};

/// Sends requests one after the other, over persistent connections.
class HttpClient {
public:
  /// `token` is only sent to the scheme, host and port of `endpoint`. A transfer that stalls for
  /// `stallSeconds` fails.
  HttpClient(std::string endpoint, std::string token, unsigned stallSeconds);
  ~HttpClient();
  HttpClient(const HttpClient &) = delete;
  HttpClient &operator=(const HttpClient &) = delete;

  using OnHead = llvm::function_ref<llvm::Error(const HttpHead &head)>;
  using OnBytes = llvm::function_ref<llvm::Error(llvm::ArrayRef<uint8_t> bytes)>;

  /// Requests the bytes of `url` starting at byte `from`; follows redirects. On success (2xx),
  /// calls `onHead` and then, for each piece of the body, `onBytes`; their errors end the transfer.
  /// Other responses are returned without body, but those that may be temporary (408, 429, 5xx) are
  /// a TransientError, as is a connection that fails after the endpoint has answered once.
  llvm::Expected<HttpHead> get(llvm::StringRef url, uint64_t from, OnHead onHead, OnBytes onBytes);

  /// Calls `attempt` until it succeeds or fails with an error other than TransientError. Waits
  /// before each retry, after calling `waiting` with the reason; gives up after several retries in
  /// a row without growth of `progress`, or if the server requests a wait of more than minutes.
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

/// `text` escaped as part of a URL's path: all characters but letters, digits, `-._~` and slashes.
std::string escapePath(llvm::StringRef text);

/// The URL of the next page in a Link header; empty if there is none.
llvm::StringRef nextPage(llvm::StringRef link);

} // namespace mica::hub

#endif // MICA_TOOLS_HUB_HTTP_H
