/* A child process with limits: a function in a forked copy of this process, or a program.
 *
 * The child is alone in a process group, which is killed as a whole when the child has ended or its
 * time is up: nothing it starts outlives it. It reads from /dev/null, has no other open files, leaves
 * no core file and ends with its parent, and so does the group of a program, however the parent ends.
 * What it prints is read and its end kept. A result comes back
 * in memory that both share (memory_shared), and whoever reads it there checks it: a child may write
 * anywhere before it dies.
 */
#ifndef CANVAS_RUN_CHILD_H
#define CANVAS_RUN_CHILD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/status.h"

/* Open files that a child keeps, in rising order; `data` is freed with mem_free. */
struct child_files {
  VEC(int);
};
void child_keep(struct child_files *files, int file); /* once */

struct child_limits {
  double
      seconds; /* of processor time, for each of `threads`; of a program with all that it starts */
  double wall; /* seconds of the clock, for a child that sleeps; 0: CHILD_WALL times `seconds` */
  int threads; /* 0 and 1: one */
  int64_t memory; /* bytes it may map (a function: over what its parent had); 0: no limit */
  int64_t file;   /* bytes of a file it writes; 0: it may write none */

  /* Of work in steps: a counter in shared memory. Where it has changed, both limits begin anew, at most
   * `steps` times; NULL: one step. `until`: a time of clock_wall, after which it ends; 0: none. */
  const volatile int *step;
  int steps;
  double until;

  const struct child_files *files; /* of a function; NULL: none */
};
enum { CHILD_WALL = 10 };

enum child_how { CHILD_EXITED, CHILD_CRASHED, CHILD_OUT_OF_TIME, CHILD_OUT_OF_MEMORY };
enum { CHILD_SAID = 1024 };

struct child_end {
  enum child_how how;
  int code;   /* the exit status, or the signal */
  bool known; /* a crash: `address` is what it touched */
  bool stack; /* ... and it lies beyond the stack */
  uint64_t address;
  double seconds;        /* of wall time that it ran */
  double limit;          /* out of time: the seconds that it was given, ... */
  bool processor;        /* the limit is of processor time; else of the clock */
  char said[CHILD_SAID]; /* the end of what it printed: printable characters and line breaks */
};

/* Runs `work(data)` in a copy of this process; it ends with the answer as its exit status. Fails, with
 * CANVAS_IO, only if the system gives no process. */
canvas_status child_call(canvas_context *ctx, int (*work)(void *data), void *data,
                         const struct child_limits *limits, struct child_end *end);

/* Runs a program, found as the PATH says, by its words (NULL after the last), in folder `folder`, which
 * is also its TMPDIR. A program that cannot be started ends with status CHILD_NO_PROGRAM. */
enum { CHILD_NO_PROGRAM = 127 };
canvas_status child_exec(canvas_context *ctx, char *const *words, const char *folder,
                         const struct child_limits *limits, struct child_end *end);

/* While `asked` answers true, whatever this thread starts or waits for ends as if its time were up; it is
 * asked every few milliseconds. Copies of this process do not ask. NULL: nothing is asked any more. */
void child_stop_when(bool (*asked)(void *data), void *data);
/* What this thread was told last, to tell it to another one of this process. */
struct child_stop {
  bool (*asked)(void *data);
  void *data;
};
struct child_stop child_stop_told(void);
bool child_stopped(void); /* it answered true when it was asked last */

/* A copy of this process that works while this one goes on, without its open files; it ends with it.
 * -1: the system gives none. */
int child_beside(void (*work)(void *data), void *data);
void child_join(int child); /* until it has ended, or is stopped; -1 is fine */

/* "crashed at address 0x0 (segmentation fault)", "ran longer than 10 s of processor time", ...: a clause. */
void child_describe(const struct child_end *end, const struct child_limits *limits, char *text,
                    size_t size);

/* Zeroed memory that a child shares with its parent; NULL if there is none. */
void *memory_shared(size_t size);
void memory_unshare(void *memory, size_t size); /* NULL is fine */

/* Seconds on a clock that never jumps. */
double clock_wall(void);

/* Processor seconds of this thread and of the children that it started and that have ended. */
double clock_processor(void);

#endif
