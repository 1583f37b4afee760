// A plug-in: MPI as programs use it. Compiled once for each implementation.
#define _GNU_SOURCE // pthread_mutex_clocklock
#include "backends/runtime/ranks/MpiPlugin.h"

#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static MPI_Win shared = MPI_WIN_NULL;

/// A heartbeat on its way to a rank.
typedef struct Beat {
  MPI_Request request;
  int64_t value;
} Beat;

static MPI_Comm beats = MPI_COMM_NULL;
static Beat *sentBeats; ///< one for each rank

/// MPI is used by one thread at a time.
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

/// Heartbeats do not wait for a thread that never leaves MPI.
static int lockForBeat(void) {
  struct timespec end;
  enum { maxWait = 50000000, second = 1000000000 };
  clock_gettime(CLOCK_MONOTONIC, &end);
  end.tv_nsec += maxWait;
  if (end.tv_nsec >= second) {
    end.tv_nsec -= second;
    ++end.tv_sec;
  }
  return pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &end) == 0;
}

static int start(int64_t *rank, int64_t *size) {
  int given, own, all;
  int error = MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &given);
  // Heartbeats have a thread of their own.
  if (error == MPI_SUCCESS && given < MPI_THREAD_SERIALIZED)
    error = MPI_ERR_UNSUPPORTED_OPERATION;
  if (error == MPI_SUCCESS)
    error = MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (error == MPI_SUCCESS)
    error = MPI_Comm_rank(MPI_COMM_WORLD, &own);
  if (error == MPI_SUCCESS)
    error = MPI_Comm_size(MPI_COMM_WORLD, &all);
  if (error == MPI_SUCCESS)
    error = MPI_Comm_dup(MPI_COMM_WORLD, &beats);
  if (error != MPI_SUCCESS)
    return error;
  sentBeats = malloc((size_t)all * sizeof *sentBeats);
  if (!sentBeats)
    return MPI_ERR_NO_MEM;
  for (int i = 0; i < all; ++i)
    sentBeats[i].request = MPI_REQUEST_NULL;
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

/// Creates a window of `bytes` bytes of zeros in the memory of rank 0. `memory` stays null if loads
/// and stores of ranks are only visible to each other after calls of MPI: on none of the processors
/// that programs run on.
static int allocateShared(MPI_Comm host, uint64_t bytes, void **memory) {
  int own, unit, isSet = 0;
  int *model = NULL;
  MPI_Aint size;
  MPI_Comm_rank(host, &own);
  void *base;
  // Aligned to a page by all implementations; a line more, to be sure.
  enum { line = 64 };
  int error = MPI_Win_allocate_shared(own == 0 ? (MPI_Aint)bytes + line : 0, 1, MPI_INFO_NULL, host,
                                      &base, &shared);
  if (error == MPI_SUCCESS)
    error = MPI_Win_get_attr(shared, MPI_WIN_MODEL, &model, &isSet);
  if (error != MPI_SUCCESS || !isSet || *model != MPI_WIN_UNIFIED)
    return error;
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

static int share(uint64_t bytes, void **memory) {
  MPI_Comm host;
  int onHost, all;
  *memory = NULL;
  MPI_Comm_size(MPI_COMM_WORLD, &all);
  // In the order of all ranks.
  int error = MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
  if (error != MPI_SUCCESS)
    return error;
  error = MPI_Comm_size(host, &onHost);
  if (error == MPI_SUCCESS && onHost == all)
    error = allocateShared(host, bytes, memory);
  MPI_Comm_free(&host);
  return error;
}

static int oversubscribed;

static void setOversubscribed(int is) { oversubscribed = is; }

/// Waits without occupying the processor for long, or at all if others need it.
static int await(MPI_Request *request) {
  int done = 0;
  for (int64_t polls = 0;; ++polls) {
    pthread_mutex_lock(&mutex);
    int error = MPI_Test(request, &done, MPI_STATUS_IGNORE);
    pthread_mutex_unlock(&mutex);
    if (error != MPI_SUCCESS || done)
      return error;
    // After some milliseconds, the other ranks wait for something to compute.
    enum { spins = 20000 };
    struct timespec pause = {0, polls < 2 * spins ? 20000 : 1000000};
    if (polls > spins)
      nanosleep(&pause, NULL);
    else if (oversubscribed)
      sched_yield();
  }
}

/// More bytes are moved in pieces, because heartbeats arrive after what has been sent before: a
/// piece must take much less time than they may be missing, also at 10 Mb/s.
enum { pieceBytes = 1 << 19 };

/// The size of the piece at byte `at`.
static int pieceAt(uint64_t at, uint64_t bytes) {
  return (int)(bytes - at < pieceBytes ? bytes - at : pieceBytes);
}

/// Begins to gather a piece of each rank's part, whose parts are `stride` bytes apart in `all`.
static int beginGather(const void *piece, int bytes, void *all, uint64_t stride,
                       MPI_Request *request) {
  if ((uint64_t)bytes == stride)
    return MPI_Iallgather(piece, bytes, MPI_BYTE, all, bytes, MPI_BYTE, MPI_COMM_WORLD, request);
  MPI_Datatype contiguous, strided;
  int error = MPI_Type_contiguous(bytes, MPI_BYTE, &contiguous);
  if (error != MPI_SUCCESS)
    return error;
  error = MPI_Type_create_resized(contiguous, 0, (MPI_Aint)stride, &strided);
  if (error == MPI_SUCCESS) {
    error = MPI_Type_commit(&strided);
    if (error == MPI_SUCCESS)
      error = MPI_Iallgather(piece, bytes, MPI_BYTE, all, 1, strided, MPI_COMM_WORLD, request);
    MPI_Type_free(&strided); // when it has been gathered
  }
  MPI_Type_free(&contiguous);
  return error;
}

static int allGather(const void *part, uint64_t bytes, void *all) {
  int error = MPI_SUCCESS;
  for (uint64_t at = 0; at < bytes && error == MPI_SUCCESS; at += pieceBytes) {
    MPI_Request request;
    pthread_mutex_lock(&mutex);
    error =
        beginGather((const char *)part + at, pieceAt(at, bytes), (char *)all + at, bytes, &request);
    pthread_mutex_unlock(&mutex);
    if (error == MPI_SUCCESS)
      error = await(&request);
  }
  return error;
}

static int broadcast(void *data, uint64_t bytes) {
  int error = MPI_SUCCESS;
  for (uint64_t at = 0; at < bytes && error == MPI_SUCCESS; at += pieceBytes) {
    MPI_Request request;
    pthread_mutex_lock(&mutex);
    error =
        MPI_Ibcast((char *)data + at, pieceAt(at, bytes), MPI_BYTE, 0, MPI_COMM_WORLD, &request);
    pthread_mutex_unlock(&mutex);
    if (error == MPI_SUCCESS)
      error = await(&request);
  }
  return error;
}

static int sendBeat(int64_t rank, int64_t value, int *sent) {
  Beat *beat = &sentBeats[rank];
  *sent = 0;
  if (!lockForBeat())
    return 0;
  int left = 1;
  int error = MPI_Test(&beat->request, &left, MPI_STATUS_IGNORE);
  if (error == MPI_SUCCESS && left) {
    beat->value = value;
    error = MPI_Isend(&beat->value, 1, MPI_INT64_T, (int)rank, 0, beats, &beat->request);
    *sent = error == MPI_SUCCESS;
  }
  pthread_mutex_unlock(&mutex);
  return error;
}

static int receiveBeat(int64_t *rank, int64_t *value) {
  int there = 0;
  MPI_Status status;
  *rank = -2;
  if (!lockForBeat())
    return 0;
  *rank = -1;
  int error = MPI_Iprobe(MPI_ANY_SOURCE, 0, beats, &there, &status);
  if (error == MPI_SUCCESS && there) {
    // Does not wait: a message as short as this has arrived as a whole.
    error = MPI_Recv(value, 1, MPI_INT64_T, status.MPI_SOURCE, 0, beats, MPI_STATUS_IGNORE);
    if (error == MPI_SUCCESS)
      *rank = status.MPI_SOURCE;
  }
  pthread_mutex_unlock(&mutex);
  return error;
}

static void finish(void) {
  int all = 0;
  MPI_Comm_size(beats, &all);
  for (int i = 0; i < all; ++i)
    MPI_Wait(&sentBeats[i].request, MPI_STATUS_IGNORE);
  MPI_Comm_free(&beats);
  free(sentBeats);
  if (shared != MPI_WIN_NULL)
    MPI_Win_free(&shared);
  MPI_Finalize();
}

__attribute__((visibility("default"))) const MicaMpi *micaMpi(void) {
  static const MicaMpi functions = {MICA_MPI_ABI, start,     message,  share,       setOversubscribed,
                                    allGather,    broadcast, sendBeat, receiveBeat, finish};
  return &functions;
}
