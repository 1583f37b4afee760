/* Exchanges by MPI's own collectives, for comparison with RankBenchmarks.cpp. Built by ranks.py with the compiler of each implementation. */
#include "RankBenchmark.h"

#include <mpi.h>
#include <signal.h>
#include <unistd.h>

/* Errors end the program, MPI's default. */
static int gather(const void *part, uint64_t bytes, void *all) {
  return MPI_Allgather(part, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, MPI_COMM_WORLD);
}

static int reduce(const float *row, uint64_t bytes, float *sum) {
  return MPI_Allreduce(row, sum, (int)(bytes / sizeof(float)), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static int status;

static void end(int signal) {
  (void)signal;
  _exit(status);
}

int main(int argc, char **argv) {
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  struct Exchanges exchanges = {rank, size, gather, reduce};
  status = measureExchanges(&exchanges, argc, argv);
  /* MPICH 4.0 may hang in MPI_Finalize over TCP. */
  fflush(NULL);
  signal(SIGALRM, end);
  alarm(3);
  MPI_Finalize();
  return status;
}
