/* Tuning logs: any bytes as a file are records or one message; what is read is written and read again as it
 * was, a record binds or says why not, and a file that is no log is never changed. Whatever a record says, and whatever
 * stands in place of its edits, what is bound computes what the program says. */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/memory.h"
#include "rewrite/program_edit.h"
#include "run/cache.h"
#include "same_program.h"
#include "tune/log.h"

static const double SLACK = 1e-6; /* for sums in parts and reciprocals */

static void check_record(canvas_context *ctx, const struct record *r) {
  struct buf once = {0}, twice = {0};
  struct record again;
  record_print(r, &once);
  must(fine(ctx, record_parse(ctx, once.text, once.length, &again)), "a printed record parses");
  record_print(&again, &twice);
  must(!strcmp(once.text, twice.text), "the text of a record is stable");
  must(!memchr(once.text, '\n', once.length - 1), "a record is one line");
  must(record_compare(&again, &again) == 0, "a record equals itself");
  record_free(&again);
  buf_free(&once);
  buf_free(&twice);
}

static void check_line(canvas_context *ctx, const char *text, size_t size) {
  struct record r;
  struct recorded bound;
  const struct record_use use = {0};
  if (!fine(ctx, record_parse(ctx, text, size, &r))) return;
  if (!r.outdated) check_record(ctx, &r);
  if (fine(ctx, record_bind(ctx, &r, &use, &bound))) {
    must(!r.outdated, "an outdated record is not bound");
    must_compute(ctx, bound.given, bound.program, SLACK, "a record keeps what is computed");
    recorded_free(&bound);
  }
  record_free(&r);
}

/* The input as the edits of a record, of programs that every kind of edit is for. */
static void check_edits(canvas_context *ctx, const char *text, size_t size) {
  static const char *const programs[] = {
      "program p\nin X f32 [h:5, w:6]\nin W f32 [k:3, c:4]\nin q i32 [r:3] 0..6 rising\n"
      "Y[h:5, w:6] = (if 1 <= w+k && w+k < 7 then X[h, w+k-1] else 0) * W[k, c] // sum k:3, c:4\n"
      "T[w:5] = if w < 1 || !(w <= 3) then 2 else X[w, w-1]\nS[h:5, r:2] = X[h, e] // sum "
      "e:q[r]..q[r+1]\nZ[h:5, w:6] = Y[h, w] / sqrt(abs(X[h, 1]) + 0.001) + T[h]\nout Z, S\n",
      "program p\nin X f32 [n:2, c:3, h:6, w:4]\nin W f32 [o:2, c:3, kh:3, kw:3] const\n"
      "P[n:2, c:3, h:8, w:6] = if 1 <= h && h < 7 && 1 <= w && w < 5 then X[n, c, h-1, w-1] else "
      "0\n"
      "Y[n:2, o:2, h:6, w:4] = P[n, c, h+kh, w+kw] * W[o, c, kh, kw] // sum c:3, kh:3, kw:3\n"
      "Z[n:2, o:2, h:6, w:4] = max(Y[n, o, h, (w+3)%4], 0)\nout Z\n"};
  const struct replay_rules rules = {0};
  char *edits = mem_strndup(text, size);
  for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
    struct program *p, *q;
    must(fine(ctx, program_parse(ctx, programs[i], strlen(programs[i]), &p)), "a program");
    if (fine(ctx, program_replay(ctx, p, edits, &rules, &q))) {
      must_compute(ctx, p, q, SLACK, "edits of a log keep what is computed");
      must(q->winograd == p->winograd, "nor take a convolution that nobody allowed");
    }
    program_free(q);
    program_free(p);
  }
  mem_free(edits);
}

/* Appending to it makes a log of which all is read, or changes nothing. */
static void check_file(canvas_context *ctx, const char *path, const char *text, size_t size) {
  struct records before = {0}, after = {0};
  struct log *log;
  struct buf bytes = {0};
  const struct record r = {.failure = FAILED_RUN, .threads = 1};
  bool is_log = fine(ctx, log_read(ctx, path, &before));
  bool opened = fine(ctx, log_open(ctx, path, &log));
  must(opened == is_log, "what can be read can be appended to");
  if (opened) {
    must(fine(ctx, log_append(ctx, log, &r)), "a record is appended");
    log_close(log);
    must(fine(ctx, log_read(ctx, path, &after)), "it is read again");
    must(after.count == before.count + 1, "with one record more");
  } else {
    must(file_read(path, size, &bytes) && bytes.length == size &&
             (!size || !memcmp(bytes.text, text, size)),
         "what is no log stays as it is");
  }
  records_free(&before);
  records_free(&after);
  buf_free(&bytes);
}

void fuzz(canvas_context *ctx, const char *text, size_t size) {
  static char path[300];
  if (!*path) {
    const char *folder = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/canvas-fuzz-%ld.log", folder ? folder : "/tmp", (long)getpid());
  }
  check_line(ctx, text, size);
  check_edits(ctx, text, size);
  must(fine(ctx, file_write(ctx, path, text, size)), "there is room for a file");
  check_file(ctx, path, text, size);
  unlink(path);
}
