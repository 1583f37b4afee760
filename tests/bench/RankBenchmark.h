/* The measurement that RankBenchmarks.cpp and MpiBenchmarks.c have in common: exchanges between
 * ranks, repeated and timed.
 *
 *     PROGRAM (REPEAT EXCHANGE)...    started by mpirun; each EXCHANGE is a list such as
 * gather:4096,8192,4096,8192
 *
 * `gather:N`: all ranks receive a row of N bytes, of which each has sent an equal part. `reduce:N`:
 * all ranks receive the sum of the rows of N bytes (f32) of all ranks. The items of a list are
 * exchanged one after the other, as those of a layer. */
#ifndef MICA_TESTS_BENCH_RANKBENCHMARK_H
#define MICA_TESTS_BENCH_RANKBENCHMARK_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The exchanges of an implementation. They return 0, or something else after a message. */
struct Exchanges {
  int64_t rank, size;
  int (*gather)(const void *part, uint64_t bytes, void *all);
  int (*reduce)(const float *row, uint64_t bytes, float *sum);
};

/* Seconds. */
static double benchmarkTime(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int compareTimes(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

enum { benchmarkMaxItems = 16 };

/* Measures one EXCHANGE and, on rank 0, prints it as JSON. */
static int measureExchange(const struct Exchanges *exchanges, const char *text, long repeat) {
  int isGather = strncmp(text, "gather:", 7) == 0, count = 0;
  uint64_t bytes[benchmarkMaxItems], largest = 0;
  const char *rest = text + 7;
  if (!isGather && strncmp(text, "reduce:", 7) != 0)
    rest = "";
  while (*rest && count < benchmarkMaxItems) {
    char *end;
    bytes[count] = strtoull(rest, &end, 10);
    uint64_t unit = isGather ? (uint64_t)exchanges->size : sizeof(float);
    if (end == rest || bytes[count] == 0 || bytes[count] % unit != 0)
      break;
    largest = bytes[count] > largest ? bytes[count] : largest;
    ++count;
    rest = *end == ',' ? end + 1 : end;
  }
  if (count == 0 || *rest || repeat < 1) {
    fprintf(stderr,
            "'%s' is neither gather:N,... nor reduce:N,... for %d ranks, or is never repeated\n",
            text, (int)exchanges->size);
    return 1;
  }
  /* Filled, so that all pages exist. */
  float *sent = (float *)malloc(largest), *received = (float *)malloc(largest);
  double *times = (double *)malloc((size_t)repeat * sizeof(double)), sum = 0;
  int failed = !sent || !received || !times;
  if (!failed) {
    memset(sent, 0, largest);
    memset(received, 0, largest);
  }
  /* The first ones also connect ranks. */
  for (long i = -2; i < repeat && !failed; ++i) {
    double start = benchmarkTime();
    for (int item = 0; item < count && !failed; ++item)
      failed = isGather ? exchanges->gather(sent, bytes[item] / (uint64_t)exchanges->size, received)
                        : exchanges->reduce(sent, bytes[item], received);
    if (i >= 0)
      sum += times[i] = benchmarkTime() - start;
  }
  if (!failed && exchanges->rank == 0) {
    qsort(times, (size_t)repeat, sizeof(double), compareTimes);
    printf("{\"exchange\": \"%s\", \"median_us\": %.3f, \"p10_us\": %.3f, \"p90_us\": %.3f, "
           "\"mean_us\": %.3f}\n",
           text, 1e6 * times[repeat / 2], 1e6 * times[repeat / 10], 1e6 * times[repeat * 9 / 10],
           1e6 * sum / (double)repeat);
  }
  free(sent);
  free(received);
  free(times);
  return failed;
}

/* The exit status of a program with these arguments. */
static int measureExchanges(const struct Exchanges *exchanges, int argc, char **argv) {
  if (argc < 3 || argc % 2 == 0) {
    fprintf(stderr, "usage: %s (REPEAT EXCHANGE)...\n", argv[0]);
    return 2;
  }
  int failed = 0;
  for (int i = 1; i < argc && !failed; i += 2)
    failed = measureExchange(exchanges, argv[i + 1], strtol(argv[i], NULL, 10));
  return failed;
}

#endif // MICA_TESTS_BENCH_RANKBENCHMARK_H
