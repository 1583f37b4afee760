//===- Http.cpp - GET by libcurl ------------------------------------------===//

#include "tools/hub/Http.h"

#include "frontend/support/InputError.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"

#include <algorithm>
#include <chrono>
#include <curl/curl.h>
#include <thread>

using namespace llvm;

namespace mica::hub {

char TransientError::ID;

static constexpr StringLiteral kLinked = "x-linked-";

struct HttpClient::Curl {
  CURL *handle = nullptr;
  char message[CURL_ERROR_SIZE] = {};
};

/// The state of a request, used by libcurl's callbacks.
struct HttpClient::Transfer {
  HttpHead head = {};
  size_t headerBytes = 0;
  OnHead onHead;
  OnBytes onBytes;
  bool isBodyBegun = false;
  Error error = Error::success();

  bool succeeds() const { return head.status >= 200 && head.status < 300; }
  bool fail(Error reason) {
    error = std::move(reason);
    return false;
  }
  bool beginBody() {
    if (std::exchange(isBodyBegun, true))
      return true;
    Error refused = onHead(head);
    return refused ? fail(std::move(refused)) : true;
  }
  bool addHeader(StringRef line);
  bool addBytes(ArrayRef<uint8_t> bytes);
  static size_t headerCallback(char *data, size_t size, size_t count, void *transfer);
  static size_t bodyCallback(char *data, size_t size, size_t count, void *transfer);
};

bool HttpClient::Transfer::addHeader(StringRef line) {
  constexpr size_t maxHeaderBytes = 256 << 10;
  headerBytes += line.size();
  if (headerBytes > maxHeaderBytes)
    return false;
  line = line.rtrim("\r\n");
  if (line.starts_with("HTTP/")) {
    // Another response, after an interim one.
    head = {};
    if (line.split(' ').second.take_front(3).getAsInteger(10, head.status))
      head.status = 0;
    return true;
  }
  auto [name, value] = line.split(':');
  if (name.size() != line.size())
    head.headers[name.lower()] = value.trim().str();
  return true;
}

bool HttpClient::Transfer::addBytes(ArrayRef<uint8_t> bytes) {
  // The body of an error response is not read; aborting the transfer only costs the connection.
  if (!succeeds())
    return false;
  if (!beginBody())
    return false;
  Error refused = onBytes(bytes);
  return refused ? fail(std::move(refused)) : true;
}

size_t HttpClient::Transfer::headerCallback(char *data, size_t size, size_t count, void *transfer) {
  return static_cast<Transfer *>(transfer)->addHeader({data, size * count}) ? size * count : 0;
}

size_t HttpClient::Transfer::bodyCallback(char *data, size_t size, size_t count, void *transfer) {
  ArrayRef<uint8_t> bytes(reinterpret_cast<const uint8_t *>(data), size * count);
  return static_cast<Transfer *>(transfer)->addBytes(bytes) ? bytes.size() : 0;
}

HttpClient::HttpClient(std::string endpoint, std::string token, unsigned stallSeconds)
    : curl(std::make_unique<Curl>()), endpoint(std::move(endpoint)), token(std::move(token)),
      stallSeconds(stallSeconds) {
  curl_global_init(CURL_GLOBAL_DEFAULT);
  curl->handle = curl_easy_init();
}

HttpClient::~HttpClient() {
  curl_easy_cleanup(curl->handle);
  curl_global_cleanup();
}

/// Scheme, host and port of a URL; empty if it is not one.
static std::string originOf(const std::string &url) {
  CURLU *parts = curl_url();
  scope_exit cleanup([&] { curl_url_cleanup(parts); });
  if (!parts || curl_url_set(parts, CURLUPART_URL, url.c_str(), 0) != CURLUE_OK)
    return {};
  std::string origin;
  for (CURLUPart part : {CURLUPART_SCHEME, CURLUPART_HOST, CURLUPART_PORT}) {
    char *text = nullptr;
    if (curl_url_get(parts, part, &text, CURLU_DEFAULT_PORT) != CURLUE_OK)
      return {};
    origin += StringRef(text).lower() + " ";
    curl_free(text);
  }
  return origin;
}

/// Whether a retry may succeed after this error of libcurl.
static bool isTransient(CURLcode code) {
  return is_contained({CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_CONNECT, CURLE_OPERATION_TIMEDOUT,
                       CURLE_PARTIAL_FILE, CURLE_RECV_ERROR, CURLE_SEND_ERROR, CURLE_GOT_NOTHING,
                       CURLE_HTTP2, CURLE_HTTP2_STREAM, CURLE_SSL_CONNECT_ERROR},
                      code);
}

/// Whether the status requests a retry.
static bool isTransient(long status) { return status == 408 || status == 429 || status >= 500; }

/// The seconds in a Retry-After header; dates are not supported.
static unsigned retryAfter(const HttpHead &head) {
  unsigned seconds = 0;
  return head.header("retry-after").getAsInteger(10, seconds) ? 0 : seconds;
}

Expected<HttpHead> HttpClient::request(const std::string &url, uint64_t from, OnHead onHead,
                                       OnBytes onBytes) {
  CURL *handle = curl->handle;
  // No test: libcurl only fails without memory.
  if (!handle)
    return inputError(url, "libcurl cannot be started", "free memory");
  curl_easy_reset(handle); // keeps connections open
  Transfer transfer{.onHead = onHead, .onBytes = onBytes};
  std::string range = std::to_string(from) + "-", bearer = "Authorization: Bearer " + token;
  curl_slist *headers = nullptr;
  if (!token.empty() && originOf(url) == originOf(endpoint))
    headers = curl_slist_append(headers, bearer.c_str());
  scope_exit cleanup([&] { curl_slist_free_all(headers); });
  curl->message[0] = '\0';
  curl_easy_setopt(handle, CURLOPT_ERRORBUFFER, curl->message);
  curl_easy_setopt(handle, CURLOPT_URL, url.c_str());
  curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(handle, CURLOPT_HTTPHEADER, headers);
  curl_easy_setopt(handle, CURLOPT_USERAGENT, "mica/" MICA_VERSION);
  curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(handle, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT, static_cast<long>(stallSeconds));
  curl_easy_setopt(handle, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(handle, CURLOPT_LOW_SPEED_TIME, static_cast<long>(stallSeconds));
  if (from > 0)
    curl_easy_setopt(handle, CURLOPT_RANGE, range.c_str());
  curl_easy_setopt(handle, CURLOPT_HEADERFUNCTION, Transfer::headerCallback);
  curl_easy_setopt(handle, CURLOPT_HEADERDATA, &transfer);
  curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, Transfer::bodyCallback);
  curl_easy_setopt(handle, CURLOPT_WRITEDATA, &transfer);
  CURLcode code = curl_easy_perform(handle);
  if (code == CURLE_OK && transfer.succeeds())
    transfer.beginBody();
  if (transfer.error)
    return std::move(transfer.error);
  bool isAnswered = transfer.head.status > 0;
  hasAnswered |= isAnswered;
  // Queries may contain signatures.
  std::string place = StringRef(url).split('?').first.str();
  if (isAnswered && isTransient(transfer.head.status))
    return make_error<TransientError>(place + " answers with status " +
                                          std::to_string(transfer.head.status),
                                      retryAfter(transfer.head));
  if (code == CURLE_OK || (isAnswered && !transfer.succeeds()))
    return std::move(transfer.head);
  std::string reason = curl->message[0] ? curl->message : curl_easy_strerror(code);
  if (hasAnswered && isTransient(code))
    return make_error<TransientError>(place + " cannot be read (" + reason + ")", 0);
  return inputError(place, "cannot be read (" + reason + ")", "check the network and HF_ENDPOINT");
}

Expected<HttpHead> HttpClient::get(StringRef url, uint64_t from, OnHead onHead, OnBytes onBytes) {
  constexpr unsigned maxRedirects = 10;
  std::string at = url.str();
  StringMap<std::string> linked;
  for (unsigned i = 0; i <= maxRedirects; ++i) {
    auto begin = [&](const HttpHead &head) {
      HttpHead whole = head;
      for (const auto &entry : linked)
        whole.headers[entry.getKey()] = entry.getValue();
      return onHead(whole);
    };
    Expected<HttpHead> head = request(at, from, begin, onBytes);
    if (!head || head->status < 300 || head->status >= 400)
      return head;
    for (const auto &entry : head->headers)
      if (entry.getKey().starts_with(kLinked))
        linked.insert({entry.getKey(), entry.getValue()});
    char *next = nullptr;
    curl_easy_getinfo(curl->handle, CURLINFO_REDIRECT_URL, &next);
    StringRef target = next ? next : "";
    bool isHttps = target.starts_with_insensitive("https://");
    if (!isHttps && (!target.starts_with_insensitive("http://") ||
                     StringRef(at).starts_with_insensitive("https://")))
      return inputError(StringRef(at).split('?').first,
                        "redirects to " + inQuotes(target.split('?').first) +
                            ", which is not followed",
                        "check HF_ENDPOINT");
    at = target.str();
  }
  return inputError(url, "redirects too often", "check HF_ENDPOINT");
}

Error HttpClient::retry(function_ref<Error()> attempt, function_ref<uint64_t()> progress,
                        function_ref<void(StringRef reason)> waiting) {
  constexpr unsigned maxFailures = 5, maxWait = 300;
  for (unsigned failures = 1;; ++failures) {
    uint64_t before = progress();
    Error error = attempt();
    if (!error.isA<TransientError>())
      return error;
    std::string reason;
    unsigned wait = 0;
    handleAllErrors(std::move(error), [&](const TransientError &transient) {
      reason = transient.message;
      wait = transient.waitSeconds;
    });
    if (progress() > before)
      failures = 1;
    if (failures >= maxFailures || wait > maxWait)
      return createStringError(reason + "; try again " +
                               (wait > 0 ? "in " + std::to_string(wait) + " seconds" : "later"));
    waiting(reason);
    // 0.25, 0.5, 1 and 2 seconds, unless the server requests another time.
    auto pause = std::chrono::milliseconds(125 << failures);
    std::this_thread::sleep_for(
        std::max<std::chrono::milliseconds>(pause, std::chrono::seconds(wait)));
  }
}

std::string escapePath(StringRef text) {
  std::string escaped;
  for (char c : text)
    if (isAlnum(c) || StringRef("-._~/").contains(c))
      escaped += c;
    else
      escaped += "%" + toHex(StringRef(&c, 1));
  return escaped;
}

StringRef nextPage(StringRef link) {
  while (!link.empty()) {
    StringRef target = link.split('<').second.split('>').first;
    auto [parameters, rest] = link.split('>').second.split('<');
    if (parameters.contains("rel=\"next\""))
      return target;
    // The bracket removed by the split.
    link = rest.empty() ? StringRef() : link.take_back(rest.size() + 1);
  }
  return {};
}

} // namespace mica::hub
