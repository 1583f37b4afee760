// A plug-in: MPI as programs use it. Compiled once for each implementation.
#include "backends/runtime/ranks/MpiPlugin.h"

#include <mpi.h>
#include <string.h>
#include <time.h>

static MPI_Win shared = MPI_WIN_NULL;

static int start(int64_t *rank, int64_t *size) {
  int given, own, all;
  int error = MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &given);
  if (error == MPI_SUCCESS)
    error = MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (error == MPI_SUCCESS)
    error = MPI_Comm_rank(MPI_COMM_WORLD, &own);
  if (error == MPI_SUCCESS)
    error = MPI_Comm_size(MPI_COMM_WORLD, &all);
  if (error != MPI_SUCCESS)
    return error;
  *rank = own;
  *size = all;
  return 0;
}

static void message(int error, char text[MICA_MPI_MESSAGE_BYTES]) {
  char whole[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(error, whole, &length);
  strncpy(text, whole, MICA_MPI_MESSAGE_BYTES - 1);
  text[MICA_MPI_MESSAGE_BYTES - 1] = 0;
}

static int share(uint64_t bytes, void **memory) {
  MPI_Comm host;
  int own, onHost, all, unit;
  MPI_Aint size;
  *memory = NULL;
  MPI_Comm_size(MPI_COMM_WORLD, &all);
  MPI_Comm_rank(MPI_COMM_WORLD, &own);
  int error = MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
  if (error == MPI_SUCCESS)
    error = MPI_Comm_size(host, &onHost);
  if (error != MPI_SUCCESS || onHost != all)
    return error;
  void *base;
  // Aligned to a page by all implementations; a line more, to be sure.
  enum { line = 64 };
  error = MPI_Win_allocate_shared(own == 0 ? (MPI_Aint)bytes + line : 0, 1, MPI_INFO_NULL, host,
                                  &base, &shared);
  if (error == MPI_SUCCESS)
    error = MPI_Win_shared_query(shared, 0, &size, &unit, &base);
  if (error != MPI_SUCCESS)
    return error;
  // A window is at another address in each process, with the same distance from the next line,
  // because it begins at a multiple of more than a line or is part of such a mapping.
  base = (char *)base + (line - (uintptr_t)base % line) % line;
  if (own == 0)
    memset(base, 0, bytes);
  *memory = base;
  return MPI_Barrier(host);
}

/// Waits without occupying the processor for long.
static int await(MPI_Request *request) {
  int done = 0;
  for (int64_t turns = 0;; ++turns) {
    int error = MPI_Test(request, &done, MPI_STATUS_IGNORE);
    if (error != MPI_SUCCESS || done)
      return error;
    // After some milliseconds, the other ranks wait for something to compute.
    enum { spins = 20000 };
    struct timespec pause = {0, turns < 2 * spins ? 20000 : 1000000};
    if (turns > spins)
      nanosleep(&pause, NULL);
  }
}

/// Counts of MPI are ints: more bytes are moved in pieces.
enum { pieceBytes = 1 << 28 };

static int allGather(const void *part, uint64_t bytes, void *all) {
  MPI_Request request;
  if (bytes > pieceBytes)
    return MPI_ERR_COUNT;
  int error = MPI_Iallgather(part, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, MPI_COMM_WORLD,
                             &request);
  return error == MPI_SUCCESS ? await(&request) : error;
}

static int broadcast(void *data, uint64_t bytes) {
  MPI_Request request;
  for (uint64_t at = 0; at < bytes; at += pieceBytes) {
    int piece = (int)(bytes - at < pieceBytes ? bytes - at : pieceBytes);
    int error = MPI_Ibcast((char *)data + at, piece, MPI_BYTE, 0, MPI_COMM_WORLD, &request);
    if (error == MPI_SUCCESS)
      error = await(&request);
    if (error != MPI_SUCCESS)
      return error;
  }
  return 0;
}

static void finish(void) {
  if (shared != MPI_WIN_NULL)
    MPI_Win_free(&shared);
  MPI_Finalize();
}

__attribute__((visibility("default"))) const MicaMpi *micaMpi(void) {
  static const MicaMpi functions = {MICA_MPI_ABI, start, message, share, allGather, broadcast,
                                    finish};
  return &functions;
}
