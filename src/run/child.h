/* A child process with limits: a function in a fork of this process, or a program.
 *
 * The child has its own process group, which is killed when the child ends or runs out of time, so
 * that nothing that it starts outlives it. It reads from /dev/null, has no other open files, leaves
 * no core file and ends with its parent; so does the group of a program. The end of its output is
 * kept. Results are passed in shared memory (memory_shared). The parent must check them, since a
 * failing child may have written anywhere.
 */
#ifndef CANVAS_RUN_CHILD_H
#define CANVAS_RUN_CHILD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/status.h"

/* Files that stay open in a child, in ascending order; `data` is freed with mem_free. */
struct child_files {
  VEC(int);
};
void child_keep(struct child_files *files, int file); /* adds a file once */

struct child_limits {
  double seconds; /* processor seconds per thread; a program's include all that it starts */
  double wall;    /* wall-clock seconds, for children that sleep; 0: CHILD_WALL times `seconds` */
  int threads;    /* 0 and 1: single-threaded */
  int64_t memory; /* bytes that it may map (a function: in addition to its parent's); 0: no limit */
  int64_t file;   /* maximum size of a written file; 0: no files */

  /* For work in steps: a counter in shared memory; each change restarts both limits, at most
   * `steps` times. NULL: one step. `until`: clock_wall time by which the child must end; 0: none.
   */
  const volatile int *step;
  int steps;
  double until;

  const struct child_files *files; /* files that stay open for a function; NULL: none */
};
enum { CHILD_WALL = 10 };

enum child_how { CHILD_EXITED, CHILD_CRASHED, CHILD_OUT_OF_TIME, CHILD_OUT_OF_MEMORY };
enum { CHILD_OUTPUT = 1024 };

struct child_end {
  enum child_how how;
  int code;   /* exit status or signal */
  bool known; /* crash: `address` is the accessed address */
  bool stack; /* crash: the stack overflowed */
  uint64_t address;
  double seconds;            /* wall-clock seconds that it ran */
  double limit;              /* out of time: the limit in seconds */
  bool processor;            /* out of time: the limit is of processor time, else of the clock */
  char output[CHILD_OUTPUT]; /* end of its output: printable characters and line breaks */
};

/* Runs `work(data)` in a fork of this process; its result becomes the exit status. CANVAS_IO: no
 * process could be started. */
canvas_status child_call(canvas_context *ctx, int (*work)(void *data), void *data,
                         const struct child_limits *limits, struct child_end *end);

/* Runs a program, found by PATH, with its words (NULL-terminated), in `folder`, which is also its
 * TMPDIR. A program that cannot be started ends with status CHILD_NO_PROGRAM. */
enum { CHILD_NO_PROGRAM = 127 };
canvas_status child_exec(canvas_context *ctx, char *const *words, const char *folder,
                         const struct child_limits *limits, struct child_end *end);

/* While `requested` returns true, everything that this thread starts or waits for ends as if out of
 * time. It is called every few milliseconds, but not in forks. NULL: no function. */
void child_stop_when(bool (*requested)(void *data), void *data);
/* The arguments of this thread's last child_stop_when, for another thread. */
struct child_stop {
  bool (*requested)(void *data);
  void *data;
};
struct child_stop child_stop_current(void);
bool child_stopped(void); /* last result of `requested` */

/* Forks a process that runs in parallel, without open files of this one, and ends with it. -1: no
 * process could be started. */
int child_beside(void (*work)(void *data), void *data);
void child_join(int child); /* waits until it has ended or is stopped; -1 is fine */

/* "crashed at address 0x0 (segmentation fault)", "ran longer than 10 s of processor time", ...:
 * a clause. */
void child_describe(const struct child_end *end, const struct child_limits *limits, char *text,
                    size_t size);

/* Zeroed memory shared with child processes; NULL: none left. */
void *memory_shared(size_t size);
void memory_unshare(void *memory, size_t size); /* NULL is fine */

/* Seconds of a monotonic clock. */
double clock_wall(void);

/* Processor seconds of this thread and of its children that have ended. */
double clock_processor(void);

#endif
