// Preloaded into the ranks of a program: they do not get further than the phase that MICA_TEST_PAUSE names, "init" or "starting" (both
// before MPI is started), "started" (after that, before heartbeats), "loading" or "shutdown", and their thread gets the name "paused". All
// of them compute there, or, if the number of a rank follows, as in "loading 1", this one sleeps. With "init", alarms come after a second.
// With "split 1", MPI_Comm_split_type fails on rank 1; with "barrier 1", which ranks of one host call, MPI_Barrier.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static int ownRank(void) {
  const char *rank = getenv("OMPI_COMM_WORLD_RANK");
  if (!rank)
    rank = getenv("PMI_RANK");
  return rank ? atoi(rank) : -1;
}

/// The text that follows a wanted phase, or null.
static const char *wantedOf(const char *phase) {
  const char *wanted = getenv("MICA_TEST_PAUSE");
  size_t length = strlen(phase);
  return wanted && strncmp(wanted, phase, length) == 0 && ownRank() >= 0 ? wanted + length : NULL;
}

static int concerns(const char *rank) { return rank && (!*rank || atoi(rank) == ownRank()); }

static void pauseIn(const char *phase) {
  const char *rank = wantedOf(phase);
  if (!concerns(rank))
    return;
  int sleeps = *rank != 0;
  prctl(PR_SET_NAME, "paused");
  for (;;)
    if (sleeps)
      pause();
    else
      sched_yield();
}

/// A program puts its code into a memory file.
int memfd_create(const char *name, unsigned flags) {
  if (strcmp(name, "mica-model") == 0)
    pauseIn("loading");
  return ((int (*)(const char *, unsigned))dlsym(RTLD_NEXT, "memfd_create"))(name, flags);
}

unsigned alarm(unsigned seconds) {
  return ((unsigned (*)(unsigned))dlsym(RTLD_NEXT, "alarm"))(wantedOf("init") && seconds > 0 ? 1 : seconds);
}

// Arguments are passed on as they are: their types depend on the implementation of MPI.
int MPI_Init_thread(void *argc, void *argv, long required, void *provided) {
  pauseIn("init");
  pauseIn("starting");
  return ((int (*)(void *, void *, long, void *))dlsym(RTLD_DEFAULT, "PMPI_Init_thread"))(argc, argv, required, provided);
}

enum { someError = 16 };

int MPI_Comm_split_type(void *communicator, long type, long key, void *info, void *made) {
  pauseIn("started");
  if (concerns(wantedOf("split")))
    return someError;
  return ((int (*)(void *, long, long, void *, void *))dlsym(RTLD_DEFAULT, "PMPI_Comm_split_type"))(communicator, type, key, info, made);
}

int MPI_Barrier(void *communicator) {
  return concerns(wantedOf("barrier")) ? someError : ((int (*)(void *))dlsym(RTLD_DEFAULT, "PMPI_Barrier"))(communicator);
}

int MPI_Finalize(void) {
  pauseIn("shutdown");
  return ((int (*)(void))dlsym(RTLD_DEFAULT, "PMPI_Finalize"))();
}
