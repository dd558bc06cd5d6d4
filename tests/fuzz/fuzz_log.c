/* Tuning logs: any bytes as a file are records or one message; what is read is written and read again as it
 * was, a record binds or says why not, and a file that is no log is never changed. */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/memory.h"
#include "run/cache.h"
#include "tune/log.h"

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
  if (!fine(ctx, record_parse(ctx, text, size, &r))) return;
  check_record(ctx, &r);
  if (fine(ctx, record_bind(ctx, &r, &bound))) recorded_free(&bound);
  record_free(&r);
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
  must(fine(ctx, file_write(ctx, path, text, size)), "there is room for a file");
  check_file(ctx, path, text, size);
  unlink(path);
}
