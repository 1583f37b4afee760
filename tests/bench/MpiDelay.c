/* Preloaded into ranks, whose exchanges by MPI then take MICA_DELAY_US microseconds longer, as those of two ranks over a link with this latency
 * (with more ranks, a collective sends several messages one after the other, which would take longer each). Built by ranks.py
 * with the compiler of each implementation. Exchanges through shared memory are not delayed. */
#include <mpi.h>
#include <stdlib.h>
#include <time.h>

static long long nanoseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000LL + now.tv_nsec;
}

/* Occupies the processor, as ranks do that wait for an answer. */
static void delay(void) {
  static long long wanted = -1;
  if (wanted < 0) {
    const char *text = getenv("MICA_DELAY_US");
    wanted = text ? 1000LL * atoll(text) : 0;
  }
  for (long long end = nanoseconds() + wanted; nanoseconds() < end;)
    ;
}

int MPI_Iallgather(const void *part, int count, MPI_Datatype type, void *all, int counts, MPI_Datatype types, MPI_Comm communicator,
                   MPI_Request *request) {
  delay();
  return PMPI_Iallgather(part, count, type, all, counts, types, communicator, request);
}

int MPI_Ibcast(void *data, int count, MPI_Datatype type, int root, MPI_Comm communicator, MPI_Request *request) {
  delay();
  return PMPI_Ibcast(data, count, type, root, communicator, request);
}

int MPI_Allgather(const void *part, int count, MPI_Datatype type, void *all, int counts, MPI_Datatype types, MPI_Comm communicator) {
  delay();
  return PMPI_Allgather(part, count, type, all, counts, types, communicator);
}

int MPI_Allreduce(const void *part, void *sum, int count, MPI_Datatype type, MPI_Op op, MPI_Comm communicator) {
  delay();
  return PMPI_Allreduce(part, sum, count, type, op, communicator);
}
