// A connection to a client: reads requests and writes replies.
#ifndef MICA_BACKENDS_RUNTIME_SERVE_HTTPCONNECTION_H
#define MICA_BACKENDS_RUNTIME_SERVE_HTTPCONNECTION_H

#include "backends/runtime/serve/HttpExchange.h"

#include <algorithm>
#include <boost/asio/generic/stream_protocol.hpp>
#include <cstddef>
#include <set>

namespace mica::rt::serve {

/// A connection whose request is being received, or whose client is still sending it after the
/// reply.
class HttpReceiver {
public:
  virtual ~HttpReceiver() = default;
  /// Replies without the rest of the request if its header has been received and is rejected; with
  /// `always`, whatever has been received.
  virtual void endReceiving(bool always) = 0;
};

/// State shared by all connections.
struct HttpConnections {
  HttpOptions options;
  HttpHandler handler;
  HttpHeaderCheck headerCheck;
  HttpRejectionListener rejected;
  size_t connections = 0;
  size_t exchanges = 0;
  std::set<HttpReceiver *> receiving = {};
  bool accepting = true;
  MemoryBudget memory{
      ///< see HttpOptions::maxReservedBytes
      std::max(options.maxReservedBytes, options.maxBodyBytes + options.maxHeaderBytes)};
  MemoryBudget pending{options.maxTotalPendingBytes}; ///< bytes of streams
};

using HttpSocket = boost::asio::generic::stream_protocol::socket;

/// Serves the requests of a client until it disconnects, or rejects it if there are more
/// connections than HttpOptions::maxConnections. `shared` must outlive the connection.
void serveConnection(HttpSocket socket, HttpConnections &shared);

} // namespace mica::rt::serve

#endif // MICA_BACKENDS_RUNTIME_SERVE_HTTPCONNECTION_H
