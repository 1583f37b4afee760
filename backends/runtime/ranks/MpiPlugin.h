// The interface of the plug-ins through which programs use an implementation of MPI.
// Implementations differ in their binary interfaces, so there is a plug-in for each of them, built
// from MpiPlugin.c.
#ifndef MICA_BACKENDS_RUNTIME_RANKS_MPIPLUGIN_H
#define MICA_BACKENDS_RUNTIME_RANKS_MPIPLUGIN_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { MICA_MPI_ABI = 3, MICA_MPI_MESSAGE_BYTES = 256 };

/// Functions return 0, or an error of MPI whose text is `message`. One thread calls them at a time;
/// another one may call those of heartbeats meanwhile, between share and finish.
typedef struct MicaMpi {
  int64_t abi; ///< MICA_MPI_ABI
  /// Starts MPI: sets the number of this rank and of all ranks.
  int (*start)(int64_t *rank, int64_t *size);
  /// The text of an error, terminated.
  void (*message)(int error, char text[MICA_MPI_MESSAGE_BYTES]);
  /// Sets `memory` to `bytes` bytes of zeros that all ranks share, or to null if they are not on
  /// one host. Called once, by all ranks.
  int (*share)(uint64_t bytes, void **memory);
  /// See rt::Communicator.
  void (*setOversubscribed)(int is);
  /// See rt::Communicator. Leaves the processor to others while it waits.
  int (*allGather)(const void *part, uint64_t bytes, void *all);
  int (*broadcast)(void *data, uint64_t bytes);
  /// Sends a heartbeat to another rank. `sent` is 0 if the previous one has not left yet, or if the
  /// other thread does not leave MPI.
  int (*sendBeat)(int64_t rank, int64_t value, int *sent);
  /// Receives a heartbeat without waiting for it; `rank` is -1 if none has arrived, -2 if the other
  /// thread does not leave MPI.
  int (*receiveBeat)(int64_t *rank, int64_t *value);
  /// Ends MPI, when all ranks have called it.
  void (*finish)(void);
} MicaMpi;

/// The only function that a plug-in exports.
typedef const MicaMpi *(*MicaMpiPlugin)(void);
#define MICA_MPI_SYMBOL "micaMpi"

#ifdef __cplusplus
}
#endif

#endif // MICA_BACKENDS_RUNTIME_RANKS_MPIPLUGIN_H
