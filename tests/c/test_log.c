// Tuning logs: records as text, files that are appended to, cut, killed, filled and shared.
#include "check.h"
#include "machines.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/json.h"
#include "emit_tree.h"
#include "run/cache.h"
#include "run/processor.h"
#include "tune/log.h"

static canvas_context ctx;

#define PROGRAM                                                                     \
  "canvas 1\nprogram smooth\nin X f32 [h:12, w:12]\nin W f32 [k:3]\nY[h:12, w:10] " \
  "= X[h, w+k] * W[k] // sum k:3\nout Y\n"
#define SCHEDULE "canvas 1\nschedule s\nh, w, k =>\n    @Y = h, w // k\n"

static char *canonical_program(const char *text) {
  struct program *p;
  struct buf out = {0};
  CHECK_INT(program_parse(&ctx, text, strlen(text), &p), CANVAS_OK, ctx.message);
  program_print(p, &out);
  program_free(p);
  return buf_take(&out);
}

static char *machine_text(const struct machine *m) {
  struct buf out = {0};
  machine_print(m, &out);
  return buf_take(&out);
}

// A record of its own, to be freed; trial t takes 1 / (t + 1) seconds.
static struct record made(int trial) {
  struct record r = {.program = canonical_program(PROGRAM),
                     .edits = mem_strdup(""),
                     .schedule = mem_strdup(SCHEDULE),
                     .rule = mem_strdup("user"),
                     .method = mem_strdup("quick"),
                     .seed = UINT64_MAX,
                     .trial = trial,
                     .message = mem_strdup(""),
                     .median = 1.0 / (trial + 1),
                     .lower = 0.9 / (trial + 1),
                     .upper = 1.1 / (trial + 1),
                     .repeats = 30,
                     .threads = 1,
                     .machine = machine_text(&machine_avx512),
                     .compiler = mem_strdup("gcc -O2 (gcc 12.2.0)")};
  record_stamp(&r);
  r.time = 1763827200 + trial;
  return r;
}

static char *line_of(const struct record *r) {
  struct buf out = {0};
  record_print(r, &out);
  return buf_take(&out);
}

static char *made_line(int trial) {
  struct record r = made(trial);
  char *line = line_of(&r);
  record_free(&r);
  return line;
}

// ---- records ------------------------------------------------------------------------------------

static void records_come_back(void **state) {
  for (int i = 0; i < 40; i++) {
    struct record r = made(i), again;
    r.seed = UINT64_C(0x9E3779B97F4A7C15) * (uint64_t)i;
    r.failure = i % 4 ? FAILED_NOT : (enum failure)(i / 4 % FAILURES);
    r.screened = i % 3 == 0;
    r.threads = 1 + i % 5;
    r.cold = i % 3 ? 0 : 0.1 * i + 0.1;
    r.network = i % 7 ? 0 : r.median;
    free(r.message);
    r.message = mem_strdup(i % 2 ? "" : "element [1, 2] is 3, not 4\n\"quoted\" \\ \xe2\x80\x98");
    if (i % 5 == 0) {
      free(r.edits);
      r.edits = mem_strdup("cache Y as C\ncache C as CC\n");
    }
    char *line = line_of(&r);
    size_t length = strlen(line);
    CHECK(line[length - 1] == '\n' && !memchr(line, '\n', length - 1), line);
    CHECK_INT(record_parse(&ctx, line, length - 1, &again), CANVAS_OK, ctx.message);
    char *twice = line_of(&again);
    CHECK_TEXT(twice, line, "a record");
    CHECK(again.seed == r.seed && again.trial == i && again.failure == r.failure, line);
    CHECK(r.failure || (again.median == r.median && again.lower == r.lower), line);
    CHECK(r.failure || (again.cold == r.cold && again.network == r.network), line);
    CHECK(!r.failure || (!again.median && !again.lower && !again.upper), line);
    CHECK_TEXT(again.message, r.message, line);
    CHECK_TEXT(again.edits, r.edits, line);
    CHECK(!again.outdated, line);
    if (!r.failure) CHECK_INT(record_compare(&r, &again), 0, line);
    free(line);
    free(twice);
    record_free(&r);
    record_free(&again);
  }
}

// `text` with the first `from` replaced; to be freed.
static char *replaced(const char *text, const char *from, const char *to) {
  const char *at = strstr(text, from);
  struct buf out = {0};
  CHECK(at, from);
  buf_bytes(&out, text, (size_t)(at - text));
  buf_printf(&out, "%s%s", to, at + strlen(from));
  return buf_take(&out);
}

static void what_is_no_record_is_rejected(void **state) {
  static const struct {
    const char *from, *to, *message;
  } rows[] = {
      {"{\"canvas_log\": 2", "{\"canvas_log\": 3",
       "a record of format 3, this version of canvas reads formats up to 2"},
      {"{\"canvas_log\": 2", "{\"canvas_log\": 0", "'canvas_log' takes a whole number from 1 on"},
      {"{\"canvas_log\": 2", "{\"else\": 1", "'canvas_log' is missing"},
      {"{\"canvas_log\": 2", "{\"canvas_log\": 1", "'edited' is missing"},
      {"\"edits\": null, ", "", "'edits' is missing"},
      {", \"task\": \"", ", \"tusk\": \"", "'task' is missing"},
      {", \"task\": \"4", ", \"task\": \"5",
       "'task' is '55d0e49b2c5932c7', but the hash of the program is '45d0e49b2c5932c7'"},
      {", \"task\": \"", ", \"task\": 5, \"x\": \"", "'task' takes a string"},
      {"program smooth", "program smoothe",
       "'task' is '45d0e49b2c5932c7', but the hash of the program is 'd5cef090ff4fddc0'"},
      {", \"rule\": \"user\"", "", "'rule' is missing"},
      {"\"rule\": \"user\"", "\"rule\": null", "'rule' takes a string"},
      {"\"edits\": ", "\"edits\": false, \"e\": ", "'edits' takes a string"},
      {"\"edits\": ", "\"edited\": false, \"edits\": ", "'edited' takes a string"},
      {"\"trial\": 3", "\"trial\": -3", "'trial' takes a whole number"},
      {"\"trial\": 3", "\"trial\": 3.0", "'trial' takes a whole number"},
      {"\"trial\": 3", "\"trial\": 3000000000", "'trial' takes a whole number"},
      {"\"trial\": 3", "\"trial\": 3, \"trial\": 4", "'trial' stands there twice"},
      {"\"seed\": 18446744073709551615", "\"seed\": 18446744073709551616",
       "'seed' takes a whole number"},
      {"\"seed\": 18446744073709551615", "\"seed\": \"1\"", "'seed' takes a whole number"},
      {"\"threads\": 1", "\"threads\": 0", "'threads' takes a whole number from 1 on"},
      {"\"failure\": \"ok\"", "\"failure\": \"well\"", "'failure' takes ok or a kind of failure"},
      {"\"failure\": \"ok\"", "\"failure\": 0", "'failure' takes ok or a kind of failure"},
      {"\"median\": 0.25", "\"median\": -0.25", "'median' takes seconds, or null"},
      {"\"median\": 0.25", "\"median\": 1e999", "'median' takes seconds, or null"},
      {"\"median\": 0.25", "\"median\": \"0.25\"", "'median' takes seconds, or null"},
      {"\"median\": 0.25", "\"median\": 0", "'median' takes seconds where nothing failed"},
      {"\"median\": 0.25", "\"median\": null", "'median' takes seconds where nothing failed"},
      {"\"screened\": false", "\"screened\": 0", "'screened' takes true or false"},
      {"\"time\": ", "\"time\": 9223372036854775808, \"t\": ", "'time' takes seconds since 1970"},
      // what is let pass
      {"\"trial\": 3", "\"later\": null, \"trial\": 3", ""},
      {"\"failure\": \"ok\"", "\"failure\": \"wrong\"", ""},
      {"\"lower\": 0.225", "\"lower\": null", ""},
      {"\"edits\": null", "\"edits\": \"\"", ""},
      {"\"edits\": null", "\"edits\": \"no edits\"", ""},
      {"\"cold\": null", "\"cold\": 0.5", ""},
      {", \"cold\": null", "", ""},
      {"\"cold\": null", "\"cold\": -1", "'cold' takes seconds, or null"},
  };
  char *line = made_line(3);
  CHECK_ROWS (rows, row) {
    struct record r;
    char *text = replaced(line, row->from, row->to);
    ctx.message[0] = '\0';
    canvas_status status = record_parse(&ctx, text, strlen(text), &r);
    CHECK_TEXT(ctx.message, row->message, row->to);
    CHECK_INT(status == CANVAS_OK, !*row->message, row->to);
    if (status == CANVAS_OK) record_free(&r);
    free(text);
  }
  free(line);
}

// Format 1 had what edits made in place of them: a record without edits counts, another is counted.
static void records_of_format_1(void **state) {
  static const struct {
    const char *edited;
    bool outdated;
  } rows[] = {{"null", false}, {"program", false}, {"\"another\\ntext\\n\"", true}};
  char *line = made_line(3);
  CHECK_ROWS (rows, row) {
    struct record r;
    struct buf text = {0};
    struct recorded out;
    const struct record_use use = {0};
    char *old = replaced(line, "{\"canvas_log\": 2", "{\"canvas_log\": 1");
    const char *at = strstr(old, "\"edits\": null");
    buf_bytes(&text, old, (size_t)(at - old));
    buf_puts(&text, "\"edited\": ");
    if (!strcmp(row->edited, "program")) {
      char *program = canonical_program(PROGRAM);
      json_string(&text, program);
      free(program);
    } else {
      buf_puts(&text, row->edited);
    }
    // the key that this version has instead is none of format 1
    buf_printf(&text, ", \"edits\": \"type X bf16\"%s", at + strlen("\"edits\": null"));
    CHECK_INT(record_parse(&ctx, text.text, text.length, &r), CANVAS_OK, ctx.message);
    CHECK_INT(r.outdated, row->outdated, row->edited);
    CHECK_TEXT(r.edits, "", row->edited);
    CHECK_INT(record_bind(&ctx, &r, &use, &out), row->outdated ? CANVAS_BAD_INPUT : CANVAS_OK,
              ctx.message);
    if (row->outdated)
      CHECK_TEXT(ctx.message, "the record says what edits made and not which they are",
                 row->edited);
    recorded_free(&out);
    record_free(&r);
    buf_free(&text);
    free(old);
  }
  free(line);
}

static void winograd_is_read_from_the_texts(void **state) {
  static const struct {
    const char *edits;
    int tile;
  } rows[] = {
      {"", 0},
      {"winograd Y 4\n", 4},
      {"cache Y as C\nwinograd Y, Z 2\ninline C\n", 2},
      {"winograd Y 2\nwinograd Z 4", 4},
      {"cache winograd as C4\n", 0},
      // no texts that are written: nothing lets them pass
      {" winograd Y 4\n", 0},
      {"winograd\tY 4\n", 0},
  };
  CHECK_ROWS (rows, row) {
    const struct record r = {.program = (char *)PROGRAM, .edits = (char *)row->edits};
    const struct record_filter exact = {.exact = true}, two = {.exact = true, .winograd = 2},
                               any = {0};
    CHECK_INT(record_winograd(&r), row->tile, row->edits);
    CHECK_INT(record_passes(&r, &exact), !row->tile, row->edits);
    CHECK_INT(record_passes(&r, &two), row->tile <= 2, row->edits);
    CHECK(record_passes(&r, &any), row->edits);
  }
  struct records all = {0};
  const struct record *best, r = {.program = (char *)PROGRAM, .edits = (char *)rows[1].edits};
  const struct record_filter exact = {.exact = true};
  records_add(&all, &r);
  CHECK_INT(records_choose(&ctx, &all, PROGRAM, &exact, &best), CANVAS_NONE, rows[1].edits);
  CHECK_TEXT(
      ctx.message,
      "the best record of 'smooth' is of Winograd's convolution in tiles of 4, which rounds more",
      rows[1].edits);
  records_free(&all);
}

static void tasks_have_names(void **state) {
  static const struct {
    const char *text, *title;
  } rows[] = {{PROGRAM, "smooth"}, {"", ""}, {"canvas 1\nprogram x", "x"}, {"a program b\n", ""}};
  char one[TASK_NAME], other[TASK_NAME], title[PROGRAM_NAME];
  CHECK_ROWS (rows, row) {
    task_title(row->text, title, sizeof title);
    CHECK_TEXT(title, row->title, row->text);
  }
  task_of(PROGRAM, one);
  task_of(PROGRAM " ", other);
  CHECK(strlen(one) == 16 && strcmp(one, other) != 0, one);
  task_of("canvas 1\nprogram gemm\n", one);  // logs hold it: it stays as it is
  CHECK_TEXT(one, "034e5097edf7cafb", "of a text");
}

// ---- what a record says is bound again ------------------------------------------------------------

static char *emitted(const struct loop_tree *tree) {
  struct buf out = {0};
  const struct emit_options options = {0};
  CHECK_INT(emit_tree(&ctx, tree, &options, &out), CANVAS_OK, ctx.message);
  return buf_take(&out);
}

static void a_record_gives_the_same_code(void **state) {
  struct record r = made(0);
  struct recorded one, two;
  const struct record_use use = {0};
  CHECK_INT(record_bind(&ctx, &r, &use, &one), CANVAS_OK, ctx.message);
  char *line = line_of(&r), *code = emitted(one.tree);
  record_free(&r);
  CHECK_INT(record_parse(&ctx, line, strlen(line), &r), CANVAS_OK, ctx.message);
  CHECK_INT(record_bind(&ctx, &r, &use, &two), CANVAS_OK, ctx.message);
  char *again = emitted(two.tree);
  CHECK_TEXT(again, code, "a record");
  CHECK_INT(two.machine.l2, machine_avx512.l2, "its machine");
  free(code);
  free(again);
  free(line);
  recorded_free(&one);
  recorded_free(&two);
  record_free(&r);
}

static void what_does_not_bind_says_which_part(void **state) {
  static const struct {
    const char *program, *edits, *schedule, *machine, *message;
  } rows[] = {
      {"nonsense", "", SCHEDULE, NULL, "the program of the record: line 1, column 1: "},
      {PROGRAM, "nonsense", SCHEDULE, NULL, "the edits of the record: edit 1: line 1, column 1: "},
      {PROGRAM, "cache Y as C\ncache Y as C\n", SCHEDULE, NULL,
       "the edits of the record: edit 2: line 1, column 12: there is a 'C' already"},
      {PROGRAM, "type X bf16\n", SCHEDULE, NULL,
       "the edits of the record: edit 1: 'type X bf16' changes a data type"},
      {PROGRAM, "", "nonsense", NULL, "the schedule of the record: line 1, "},
      {PROGRAM, "", SCHEDULE, "nonsense", "the machine of the record: line 1, column 1: "},
      {PROGRAM, "", "w, h, k =>\n    @Z = h, w // k\n", NULL,
       "the schedule of the record: line 2, "},
      {PROGRAM, "", "h, wo, k, wi:? =>\n    @Y = h, {wo, wi}/w // k\n", NULL,
       "the schedule of the record has holes"},
      {PROGRAM, "cache Y as C\n", SCHEDULE, NULL, "the schedule of the record: "},
      // a gibibyte, of a program that has 12 numbers
      {"canvas 1\nprogram p\nin X f32 [h:12]\nY[h:12] = X[h] // max k:100000000\nout Y\n",
       "outline Y X[h] as Z\nrfactor Y k 50000000 as P\n",
       "h => \n    @Z = h\nh2, k_o, k_i => \n    @P = h2/h, k_i // k_o\nh3, k_i3 =>\n    @Y = h3/h "
       "// "
       "k_i3/k_i\n",
       NULL, "the schedule of the record: line 4, column 5: buffer 'P' takes 2400000000 bytes"},
  };
  CHECK_ROWS (rows, row) {
    struct recorded out;
    const struct record_use use = {0};
    char *machine = row->machine ? mem_strdup(row->machine) : machine_text(&machine_avx512);
    const struct record one = {.program = (char *)row->program,
                               .edits = (char *)row->edits,
                               .schedule = (char *)row->schedule,
                               .machine = machine};
    CHECK_INT(record_bind(&ctx, &one, &use, &out), CANVAS_BAD_INPUT, row->message);
    CHECK(!strncmp(ctx.message, row->message, strlen(row->message)), ctx.message);
    free(machine);
  }
}

// ---- files --------------------------------------------------------------------------------------

static char folder[200];

static const char *path_of(const char *name) {
  static char path[300];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

// The error message, with F for the folder.
static const char *told(void) {
  static char text[2 * MESSAGE_SIZE];
  const char *at = strstr(ctx.message, folder);
  snprintf(text, sizeof text, "%.*sF%s", at ? (int)(at - ctx.message) : 0, ctx.message,
           at ? at + strlen(folder) : ctx.message);
  return text;
}

static void write_bytes(const char *path, const char *bytes, size_t length) {
  CHECK_INT(file_write(&ctx, path, bytes, length), CANVAS_OK, ctx.message);
}

static struct buf read_bytes(const char *path) {
  struct buf out = {0};
  CHECK(file_read(path, 1 << 28, &out), path);
  return out;
}

static int make_folder(void **state) {
  return temporary_folder(folder, sizeof folder) ? 0 : -1;
}

static int remove_folder(void **state) {
  char command[300];
  snprintf(command, sizeof command, "rm -r '%s'", folder);
  return system(command);
}

static canvas_status append(const char *path, int trial, int64_t *cut) {
  struct log *log;
  struct record r = made(trial);
  canvas_status status = log_open(&ctx, path, &log);
  if (status == CANVAS_OK) {
    status = log_append(&ctx, log, &r);
    *cut = log_cut(log);
    log_close(log);
  }
  record_free(&r);
  return status;
}

static void what_is_appended_is_read(void **state) {
  const char *path = path_of("plain.log");
  struct records all = {0};
  int64_t cut;
  for (int i = 0; i < 20; i++) CHECK_INT(append(path, i, &cut), CANVAS_OK, ctx.message);
  CHECK_INT(log_read(&ctx, path, &all), CANVAS_OK, ctx.message);
  CHECK_INT(all.count, 20, path);
  CHECK_INT(all.damaged, 0, all.why);
  CHECK_INT(all.text_count, 9, "each text is kept once: edits and message are \"\"");
  for (int i = 0; i < 20; i++) CHECK_INT(all.data[i].trial, i, path);
  records_free(&all);
  unlink(path);
}

// Cut at every byte of its last line, a log is read up to there; what is appended then follows whole lines.
static void a_torn_end_is_cut_off(void **state) {
  const char *path = path_of("torn.log");
  char *first = made_line(0), *second = made_line(1), *third = made_line(2);
  size_t whole = strlen(second);
  for (int alone = 0; alone < 2; alone++)
    for (size_t length = 0; length <= whole; length++) {
      struct buf bytes = {0}, wanted = {0};
      struct records all = {0};
      int64_t cut = -1;
      if (!alone) buf_puts(&bytes, first);
      buf_bytes(&bytes, second, length);
      write_bytes(path, bytes.text, bytes.length);
      CHECK_INT(log_read(&ctx, path, &all), CANVAS_OK, ctx.message);
      bool read = length + 1 >= whole;  // the line's end may be missing
      CHECK_INT(all.count, !alone + read, "records");
      CHECK_INT(all.damaged, length && !read, "damaged lines");
      CHECK_INT(all.line, length && !read ? 2 - alone : 0, "the line");
      CHECK_INT(append(path, 2, &cut), CANVAS_OK, ctx.message);
      CHECK_INT(cut, read ? 0 : length, "bytes that are cut");
      buf_printf(&wanted, "%s%s%s", alone ? "" : first, read ? second : "", third);
      struct buf got = read_bytes(path);
      CHECK_TEXT(got.text, wanted.text, "the file");
      buf_free(&bytes);
      buf_free(&wanted);
      buf_free(&got);
      records_free(&all);
    }
  free(first);
  free(second);
  free(third);
  unlink(path);
}

// Lines end in \n, \r\n or \r; of whatever kind they are, what is whole stays.
static void every_end_of_a_line(void **state) {
  static const char *const ends[] = {"\n", "\r\n", "\r"};
  const char *path = path_of("ends.log");
  for (int i = 0; i < 3; i++)
    for (int torn = 0; torn < 3; torn++) {
      struct buf bytes = {0};
      struct records all = {0};
      int64_t cut = -1;
      for (int trial = 0; trial < 3; trial++) {
        char *line = made_line(trial);
        size_t length = strlen(line) - 1;
        buf_bytes(&bytes, line, trial == 2 && torn ? length / 2 : length);
        if (trial < 2 || torn != 1) buf_puts(&bytes, ends[i]);
        free(line);
      }
      write_bytes(path, bytes.text, bytes.length);
      CHECK_INT(log_read(&ctx, path, &all), CANVAS_OK, ctx.message);
      CHECK_INT(all.count, torn ? 2 : 3, ends[i]);
      CHECK_INT(all.line, torn ? 3 : 0, "the damaged line");
      records_free(&all);
      CHECK_INT(append(path, 3, &cut), CANVAS_OK, ctx.message);
      CHECK_INT(cut > 0, torn == 1, "half a line without an end goes");
      CHECK_INT(log_read(&ctx, path, &all), CANVAS_OK, ctx.message);
      CHECK_INT(all.count, torn ? 3 : 4, ends[i]);
      CHECK_INT(all.data[all.count - 1].trial, 3, ends[i]);
      records_free(&all);
      buf_free(&bytes);
    }
  unlink(path);
}

// Others may be killed while this one has the log open.
static void what_others_tear_is_cut_off(void **state) {
  const char *path = path_of("others.log");
  struct records all = {0};
  struct record r = made(0);
  struct log *log;
  CHECK_INT(log_open(&ctx, path, &log), CANVAS_OK, ctx.message);
  for (int i = 0; i < 3; i++) {
    CHECK_INT(log_append(&ctx, log, &r), CANVAS_OK, ctx.message);
    FILE *other = fopen(path, "a");
    fputs(RECORD_BEGIN "1, \"ta", other);
    fclose(other);
  }
  CHECK_INT(log_append(&ctx, log, &r), CANVAS_OK, ctx.message);
  CHECK_INT(log_cut(log), 3 * strlen(RECORD_BEGIN "1, \"ta"), "bytes that are cut");
  log_close(log);
  CHECK_INT(log_read(&ctx, path, &all), CANVAS_OK, ctx.message);
  CHECK_INT(all.count, 4, path);
  CHECK_INT(all.damaged, 0, all.why);
  records_free(&all);
  record_free(&r);
  unlink(path);
}

// A first line that ends within its first word is a damaged one, before the torn end is cut off and after.
static void a_first_line_cut_short_is_damaged(void **state) {
  const char *path = path_of("short.log");
  struct records all = {0};
  struct record r = made(0);
  struct log *log;
  FILE *file = fopen(path, "w");
  fputs("{\"canvas_log\"\n" RECORD_BEGIN "1, \"ta", file);
  fclose(file);
  CHECK_INT(log_open(&ctx, path, &log), CANVAS_OK, ctx.message);
  CHECK_INT(log_append(&ctx, log, &r), CANVAS_OK, ctx.message);
  log_close(log);
  CHECK_INT(log_read(&ctx, path, &all), CANVAS_OK, ctx.message);
  CHECK_INT(all.count, 1, path);
  CHECK_INT(all.damaged, 1, all.why);
  records_free(&all);
  record_free(&r);
  unlink(path);
}

// What is no log is refused, and is as it was.
static void other_files_are_not_touched(void **state) {
  static const struct {
    const char *bytes;
    size_t length;
    bool is_log;
  } rows[] = {
      {"", 0, true},
      {"{", 1, true},
      {"{\"canvas_log\": ", 15, true},
      {"{\"canvas_log\"", 13, true},
      {"{\"canvas_log\":1,\"task\"", 22, true},
      {"{ \"canvas_log\" : 1,\n", 20, true},
      {"\n", 1, false},
      {"{\n", 2, false},
      {"{\"", 2, true},
      {"{\"canvas\n", 9, false},
      {"{\"canvas_lox", 12, false},
      {" ", 1, false},
      {"{\"a\": 1}\n", 9, false},
      {"canvas 1\nkernel k\n", 18, false},
      {"\0\0\0\0", 4, false},
      {"\x7f"
       "ELF\x02\x01\x01",
       7, false},
      {"[]", 2, false},
  };
  const char *path = path_of("other");
  CHECK_ROWS (rows, row) {
    struct records all = {0};
    int64_t cut;
    write_bytes(path, row->bytes, row->length);
    canvas_status wanted = row->is_log ? CANVAS_OK : CANVAS_BAD_INPUT;
    CHECK_INT(log_read(&ctx, path, &all), wanted, row->bytes);
    if (!row->is_log)
      CHECK_TEXT(told(), "'F/other' is no tuning log, give another file", row->bytes);
    CHECK_INT(append(path, 0, &cut), wanted, row->bytes);
    if (!row->is_log)
      CHECK_TEXT(told(), "'F/other' is no tuning log, give another file", row->bytes);
    struct buf got = read_bytes(path);
    if (!row->is_log)
      CHECK(got.length == row->length && !memcmp(got.text, row->bytes, row->length), row->bytes);
    buf_free(&got);
    records_free(&all);
  }
  unlink(path);
}

static void what_is_no_file_is_refused(void **state) {
  struct records all = {0};
  int64_t cut;
  static const struct {
    const char *name, *read, *append;
  } rows[] = {
      {"none/x", "cannot read 'F/none/x': No such file or directory",
       "cannot open the log 'F/none/x': No such file or directory"},
      {".", "cannot read 'F/.': Is a directory", "cannot open the log 'F/.': Is a directory"},
      {"fifo", "'F/fifo' is no file, a tuning log has to be one",
       "'F/fifo' is no file, a tuning log has to be one"},
  };
  mkfifo(path_of("fifo"), 0600);
  CHECK_ROWS (rows, row) {
    CHECK(log_read(&ctx, path_of(row->name), &all) != CANVAS_OK, row->name);
    CHECK_TEXT(told(), row->read, row->name);
    CHECK(append(path_of(row->name), 0, &cut) != CANVAS_OK, row->name);
    CHECK_TEXT(told(), row->append, row->name);
  }
  unlink(path_of("fifo"));
}

// Lines in the middle that are damaged are told, the others are read.
static void damaged_lines_are_counted(void **state) {
  const char *path = path_of("damaged.log");
  struct buf bytes = {0};
  struct records all = {0};
  char *line = made_line(0);
  buf_puts(&bytes, line);
  buf_puts(&bytes, "\n  \r\n");               // blank lines are fine
  buf_bytes(&bytes, line, strlen(line) / 2);  // two writers that knew no lock
  buf_puts(&bytes, line);
  buf_bytes(&bytes, "\0\xff\n", 3);
  buf_puts(&bytes, "{\"canvas_log\": 7}\n");
  buf_puts(&bytes, line);
  write_bytes(path, bytes.text, bytes.length);
  CHECK_INT(log_read(&ctx, path, &all), CANVAS_OK, ctx.message);
  CHECK_INT(all.count, 2, path);
  CHECK_INT(all.damaged, 3, path);
  CHECK_INT(all.line, 4, path);
  CHECK(*all.why, path);
  records_free(&all);
  buf_free(&bytes);
  free(line);
  unlink(path);
}

static void many_records_are_read_quickly(void **state) {
  enum { MANY = 20000 };
  const char *path = path_of("many.log");
  struct records all = {0};
  struct log_tasks tasks = {0};
  struct buf bytes = {0};
  struct record r = made(0);
  for (int i = 0; i < MANY; i++) {
    r.trial = i;
    r.median = 1 + (double)((i * 7919) % MANY);
    record_print(&r, &bytes);
  }
  write_bytes(path, bytes.text, bytes.length);
  CHECK_INT(log_read(&ctx, path, &all), CANVAS_OK, ctx.message);
  CHECK_INT(all.count, MANY, path);
  const struct record_filter any = {0};
  records_tasks(&all, &any, &tasks);
  CHECK_INT(tasks.count, 1, path);
  CHECK_INT(tasks.data[0].best, 0, path);
  free(tasks.data);
  record_free(&r);
  records_free(&all);
  buf_free(&bytes);
  unlink(path);
}

// ---- other processes ----------------------------------------------------------------------------

enum { WRITERS = 4, EACH = 60 };

// Long enough for several pages, so that a write can be interrupted within.
static struct record made_long(int trial) {
  struct record r = made(trial);
  free(r.message);
  r.message = mem_alloc(40001);
  memset(r.message, 'a' + trial % 26, 40000);
  return r;
}

static void write_many(const char *path, int from, int count) {
  struct log *log;
  if (log_open(&ctx, path, &log) != CANVAS_OK) _exit(1);
  for (int i = from; i < from + count; i++) {
    struct record r = made_long(i);
    if (log_append(&ctx, log, &r) != CANVAS_OK) _exit(2);
    record_free(&r);
  }
  _exit(0);
}

static void writers_do_not_disturb_each_other(void **state) {
  const char *path = path_of("shared.log");
  struct records all = {0};
  bool seen[WRITERS * EACH] = {0};
  pid_t children[WRITERS];
  for (int i = 0; i < WRITERS; i++)
    if (!(children[i] = fork())) write_many(path, i * EACH, EACH);
  for (int i = 0; i < WRITERS; i++) {
    int status = -1;
    waitpid(children[i], &status, 0);
    CHECK_INT(status, 0, "a writer");
  }
  CHECK_INT(log_read(&ctx, path, &all), CANVAS_OK, ctx.message);
  CHECK_INT(all.count, WRITERS * EACH, path);
  CHECK_INT(all.damaged, 0, all.why);
  for (int i = 0; i < all.count; i++) seen[all.data[i].trial] = true;
  for (int i = 0; i < WRITERS * EACH; i++) CHECK(seen[i], "every record is there");
  records_free(&all);
  unlink(path);
}

// Killed at any moment, a writer costs at most the record that it was writing, and others go on.
static void a_killed_writer_leaves_whole_records(void **state) {
  const char *path = path_of("killed.log");
  int records = 0;
  for (int i = 0; i < 25; i++) {
    struct records all = {0};
    int64_t cut;
    pid_t child = fork();
    if (!child) write_many(path, 0, 1 << 30);
    nanosleep(&(struct timespec){.tv_nsec = 2000000 + 700000 * i}, NULL);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    CHECK_INT(append(path, 5, &cut), CANVAS_OK, ctx.message);
    CHECK_INT(log_read(&ctx, path, &all), CANVAS_OK, ctx.message);
    CHECK_INT(all.damaged, 0, all.why);
    CHECK(all.count > records, "at least ours has come");
    records = all.count;
    records_free(&all);
    if (i % 5 == 4) unlink(path), records = 0;
  }
  unlink(path);
}

// A file that may not grow: one error message, and the bytes before are as they were.
static void a_full_disk_leaves_no_half_line(void **state) {
  const char *path = path_of("full.log");
  char *line = made_line(0);
  size_t length = strlen(line);
  free(line);
  signal(SIGXFSZ, SIG_IGN);
  for (size_t room = 1; room < 2 * length; room += 97) {
    struct rlimit old, limit;
    struct records all = {0};
    int64_t cut;
    unlink(path);
    CHECK_INT(append(path, 0, &cut), CANVAS_OK, ctx.message);
    getrlimit(RLIMIT_FSIZE, &old);
    limit = (struct rlimit){length + room, old.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
    canvas_status status = append(path, 1, &cut);
    setrlimit(RLIMIT_FSIZE, &old);
    bool fits = room >= length;
    CHECK_INT(status, fits ? CANVAS_OK : CANVAS_IO, ctx.message);
    if (!fits)
      CHECK_TEXT(told(), "cannot write to the log 'F/full.log': File too large", "a full disk");
    CHECK_INT(log_read(&ctx, path, &all), CANVAS_OK, ctx.message);
    CHECK_INT(all.count, 1 + fits, "records");
    CHECK_INT(all.damaged, 0, all.why);
    records_free(&all);
  }
  unlink(path);
}

// ---- the best -----------------------------------------------------------------------------------

static struct records several(void) {
  static const struct {
    double median;
    enum failure failure;
    bool screened;
    int threads;
    const char *compiler, *version, *processor;
    int64_t l2;
  } rows[] = {
      {5, FAILED_NOT, false, 1, "gcc", "1", "A", 1 << 20},
      {1, FAILED_WRONG, false, 1, "gcc", "1", "A", 1 << 20},
      {2, FAILED_NOT, true, 1, "gcc", "1", "A", 1 << 20},
      {3, FAILED_NOT, false, 2, "gcc", "1", "A", 1 << 20},
      {2.5, FAILED_NOT, false, 1, "clang", "1", "A", 1 << 20},
      {2.4, FAILED_NOT, false, 1, "gcc", "2", "A", 1 << 20},
      {2.3, FAILED_NOT, false, 1, "gcc", "1", "B", 1 << 20},
      {2.2, FAILED_NOT, false, 1, "gcc", "1", "A", 2 << 20},
      {4, FAILED_NOT, false, 1, "gcc", "1", "A", 1 << 20},
      {4, FAILED_NOT, false, 1, "gcc", "1", "A", 1 << 20},
  };
  struct records all = {0};
  CHECK_ROWS (rows, row) {
    struct machine m = machine_avx512;
    m.l2 = row->l2;
    m.cores = 1 + (int)(row - rows);  // neither these ...
    m.memory = (row - rows + 1) << 20;
    char *machine = machine_text(&m), *program = canonical_program(PROGRAM);
    const struct record r = {.program = program,
                             .machine = machine,
                             .trial = (int)(row - rows),
                             .median = row->median,
                             .failure = row->failure,
                             .screened = row->screened,
                             .threads = row->threads,
                             .compiler = (char *)row->compiler,
                             .version = (char *)row->version,
                             .processor = (char *)row->processor};
    records_add(&all, &r);
    free(machine);
    free(program);
  }
  return all;
}

static void the_best_is_of_this_place(void **state) {
  struct machine m = machine_avx512;
  m.l2 = 1 << 20;
  snprintf(m.name, sizeof m.name, "other");  // ... nor the name tells machines apart
  char *machine = machine_text(&m), *program = canonical_program(PROGRAM);
  struct records all = several();
  const struct {
    struct record_filter filter;
    int trial;
  } rows[] = {
      {{machine, "A", "gcc", "1", 1, false, 0, false, NULL, NULL}, 8},
      {{machine, "A", "gcc", "1", 2, false, 0, false, NULL, NULL}, 3},
      {{machine, "A", "gcc", "1", 0, false, 0, false, NULL, NULL}, 3},
      {{NULL, "A", "gcc", "1", 1, false, 0, false, NULL, NULL}, 7},
      {{machine, NULL, "gcc", "1", 1, false, 0, false, NULL, NULL}, 6},
      {{machine, "A", "gcc", NULL, 1, false, 0, false, NULL, NULL}, 5},
      {{machine, "A", NULL, "1", 1, false, 0, false, NULL, NULL}, 4},
      {{NULL, NULL, NULL, NULL, 0, false, 0, false, NULL, NULL}, 7},
      {{machine, "C", "gcc", "1", 1, false, 0, false, NULL, NULL}, -1},
      {{machine, "A", "gcc", "1", 7, false, 0, false, NULL, NULL}, -1},
      {{"", "A", "gcc", "1", 1, false, 0, false, NULL, NULL}, -1},
  };
  CHECK_ROWS (rows, row) {
    const struct record *best = records_best(&all, program, &row->filter);
    CHECK_INT(best ? best->trial : -1, row->trial, "the best");
    struct log_tasks tasks = {0};
    records_tasks(&all, &row->filter, &tasks);
    int index = -1;
    for (int i = 0; i < tasks.count; i++)
      if (tasks.data[i].best >= 0 && &all.data[tasks.data[i].best] == best) index = i;
    CHECK_INT(index >= 0, best != NULL, "a task has it, too");
    CHECK_INT(tasks.count, 2, "one and two threads");
    CHECK_INT(tasks.data[0].trials, 9, "on one thread");
    CHECK_INT(tasks.data[0].failed[FAILED_WRONG], 1, "wrong ones");
    CHECK_INT(tasks.data[0].failed[FAILED_NOT], 8, "others");
    CHECK_INT(tasks.data[0].screened, 1, "screened ones");
    free(tasks.data);
  }
  CHECK(!records_best(&all, "another", &rows[7].filter), "of another program there is none");
  for (int i = 0; i < all.count; i++) all.data[i].screened |= all.data[i].threads == 1;
  const struct {
    struct record_filter filter;
    int trial;
  } ended[] = {
      {{machine, "A", "gcc", "1", 1, false, 0, false, NULL, NULL}, 2},
      {{machine, "A", "gcc", "1", 2, false, 0, false, NULL, NULL}, 3},
      {{machine, "A", "gcc", "1", 0, false, 0, false, NULL, NULL}, 3},
      {{machine, "C", "gcc", "1", 1, false, 0, false, NULL, NULL}, -1},
  };
  CHECK_ROWS (ended, row) {
    const struct record *best = records_best(&all, program, &row->filter);
    struct log_tasks tasks = {0};
    CHECK_INT(best ? best->trial : -1, row->trial, "of searches that were ended");
    records_tasks(&all, &row->filter, &tasks);
    bool found = !best;
    for (int i = 0; i < tasks.count; i++)
      found |= tasks.data[i].best >= 0 && &all.data[tasks.data[i].best] == best;
    CHECK(found, "a task has it, too");
    free(tasks.data);
  }
  records_free(&all);
  free(machine);
  free(program);
}

// What was timed in a network stands for all that was measured alone before, on as many threads, there.
static void what_was_timed_in_a_network_comes_first(void **state) {
  enum { TRIALS = 10 };
  static const struct {
    double median, network;
    int64_t time;
    int threads;
    bool screened, elsewhere, winograd;
  } of[TRIALS] = {
      {0.001, 0, 10, 1, false, false, false},       // 0: alone, before
      {0.005, 0.005, 20, 1, false, false, false},   // 1: in a network
      {0.002, 0, 20, 1, false, false, false},       // 2: alone, in the same second
      {0.007, 0, 30, 1, false, false, false},       // 3: alone, after it, but slower
      {0.003, 0, 10, 2, false, false, false},       // 4: on two threads
      {0.0001, 0.0001, 40, 1, false, true, false},  // 5: in a network, elsewhere
      {0.0002, 0, 50, 1, true, false, false},       // 6: a trial
      {0.004, 0, 10, 1, false, false, true},        // 7: Winograd's convolution
      {0.0045, 0, 60, 1, false, false, false},      // 8: alone, after it, and faster
      {0.009, 0.009, 70, 1, false, true, false},    // 9: as 5, later and slower
  };
  static const struct {
    int count, threads, winograd, trial;
    const char *program;
    bool nameless, anywhere;
  } rows[] = {
      {1, 1, 0, 0, "smooth", false, false},
      {3, 1, 0, 1, "smooth", false, false},
      {7, 1, 0, 1, "smooth", false, false},
      {7, 2, 0, 4, "smooth", false, false},
      {7, 0, 0, 4, "smooth", false, false},
      {8, 1, 4, 7, "smooth", false, false},
      {8, 1, 0, 1, "smooth", false, false},
      {7, 1, 0, -1, "softer", false, false},
      {7, 1, 0, 1, "softer", true, false},
      {1, 1, 0, 0, "softer", true, false},
      {9, 1, 0, 8, "smooth", false, false},
      // one of elsewhere stands for what was measured there
      {9, 1, 0, 5, "smooth", false, true},
      {10, 1, 0, 8, "smooth", false, true},
  };
  CHECK_ROWS (rows, row) {
    struct records all = {0};
    int alone = 0;
    for (int i = 0; i < row->count; i++) {
      struct record r = made(i);
      alone += of[i].threads == 1 && !(of[i].network > 0);
      r.median = of[i].median, r.network = of[i].network, r.time = of[i].time;
      r.threads = of[i].threads, r.screened = of[i].screened;
      if (of[i].elsewhere) r.processor[0] ^= 1;
      if (of[i].winograd) {
        free(r.edits);
        r.edits = mem_strdup("winograd Y 4\n");
      }
      records_add(&all, &r);
      record_free(&r);
    }
    char *processor = processor_name(), *program = canonical_program(PROGRAM);
    memcpy(strstr(program, "smooth"), row->program, strlen(row->program));
    const struct record_filter filter = {.processor = row->anywhere ? NULL : processor,
                                         .threads = row->threads,
                                         .exact = true,
                                         .winograd = row->winograd,
                                         .nameless = row->nameless};
    const struct record *best = records_best(&all, program, &filter);
    CHECK_INT(best ? best->trial : -1, row->trial, "the best");
    struct log_tasks tasks = {0};
    records_tasks(&all, &filter, &tasks);
    bool found = !best;
    for (int i = 0; i < tasks.count; i++)
      found |= tasks.data[i].best >= 0 && &all.data[tasks.data[i].best] == best;
    CHECK(found, "a task has it, too");
    CHECK_INT(tasks.data[0].trials, alone, "measured alone, on one thread");
    free(tasks.data);
    free(processor);
    free(program);
    records_free(&all);
  }
}

// What cannot be used hides nothing that can, however many there are, and whatever they say of themselves.
static void what_cannot_be_used_is_passed_over(void **state) {
  static const struct {
    int bad;
    bool screened, network;  // of the good one; of the bad ones
    const char *edits, *schedule, *why;
  } rows[] = {
      {1, false, false, "type X bf16\n", SCHEDULE, "the edits of the record: edit 1: "},
      {1, false, false, "", "h =>\n    @Z = h\n", "the schedule of the record: line 2, "},
      {3, true, false, "cache Q as R\n", SCHEDULE, "the edits of the record: edit 1: line 1, "},
      {3, false, true, "border Y\n", SCHEDULE, "the edits of the record: edit 1: line 1, "},
      {100, true, true, "winograd\tY 4\n", SCHEDULE, "the edits of the record: edit 1: "},
  };
  CHECK_ROWS (rows, row)
    for (int with_good = 0; with_good < 2; with_good++) {
      struct records all = {0};
      for (int i = 0; i <= row->bad; i++) {
        struct record r = made(i);
        bool good = i == row->bad;
        free(r.edits);
        free(r.schedule);
        r.edits = mem_strdup(good ? "" : row->edits);
        r.schedule = mem_strdup(good ? SCHEDULE : row->schedule);
        r.median = good ? 1 : 1e-9;
        r.network = !good && row->network ? r.median : 0;
        r.screened = good && row->screened;
        if (!good || with_good) records_add(&all, &r);
        record_free(&r);
      }
      const struct record_filter any = {.exact = true};
      struct program *p;
      const struct record *best;
      struct recorded bound;
      struct records_passed passed;
      struct log_tasks tasks = {0};
      CHECK_INT(program_parse(&ctx, PROGRAM, strlen(PROGRAM), &p), CANVAS_OK, ctx.message);
      const struct record_use use = {.given = p};
      canvas_status status = records_use(&ctx, &all, &any, &use, &best, &bound, &passed);
      CHECK_INT(status, with_good ? CANVAS_OK : CANVAS_NONE, row->why);
      CHECK_INT(passed.count, row->bad, row->why);
      CHECK(!strncmp(passed.why, row->why, strlen(row->why)), passed.why);
      if (with_good) {
        CHECK_INT(best->trial, row->bad, "the good one");
        recorded_free(&bound);
      } else {
        CHECK(strstr(ctx.message, " of 'smooth' cannot be used: the "), ctx.message);
      }
      records_usable_tasks(&all, &any, NULL, &tasks);
      CHECK_INT(tasks.count, 1, row->why);
      CHECK_INT(tasks.data[0].best, with_good ? row->bad : -1, row->why);
      CHECK_INT(tasks.data[0].refused, row->bad, row->why);
      CHECK(!strncmp(tasks.data[0].why, row->why, strlen(row->why)), tasks.data[0].why);
      free(tasks.data);
      program_free(p);
      records_free(&all);
    }
}

// ---- merged -------------------------------------------------------------------------------------

static char *merged(const int *trials, int count) {
  struct records all = {0};
  struct buf out = {0};
  for (int i = 0; i < count; i++) {
    struct record r = made(trials[i]);
    records_add(&all, &r);
    record_free(&r);
  }
  records_merge(&all);
  for (int i = 0; i < all.count; i++) buf_printf(&out, "%d ", all.data[i].trial);
  records_free(&all);
  return buf_take(&out);
}

static void merging_does_not_depend_on_the_order(void **state) {
  static const struct {
    int trials[8], count;
  } rows[] = {{{1, 2, 3, 5}, 4}, {{5, 3, 2, 1}, 4}, {{3, 1, 3, 2, 5, 5, 1, 1}, 8}};
  CHECK_ROWS (rows, row) {
    char *text = merged(row->trials, row->count);
    CHECK_TEXT(text, "1 2 3 5 ", "trials");
    free(text);
  }
  char *text = merged(NULL, 0);
  CHECK_TEXT(text, "", "of nothing");
  free(text);
}

// Of several that are as fast the same one is the best, whatever the order of the lines.
static void ties_do_not_depend_on_the_order(void **state) {
  static const int orders[][4] = {{1, 2, 3, 4}, {4, 3, 2, 1}, {2, 4, 1, 3}};
  static const struct record_filter any = {0};
  for (int i = 0; i < 3; i++) {
    struct records all = {0};
    struct log_tasks tasks = {0};
    for (int j = 0; j < 4; j++) {
      struct record r = made(orders[i][j]);
      r.median = 0.5;
      records_add(&all, &r);
      record_free(&r);
    }
    const struct record *best = records_best(&all, all.data[0].program, &any);
    CHECK_INT(best ? best->trial : -1, 1, "the first of merged logs");
    records_tasks(&all, &any, &tasks);
    CHECK_INT(all.data[tasks.data[0].best].trial, 1, "of a task, too");
    free(tasks.data);
    records_free(&all);
  }
}

// ---- canvas.h -----------------------------------------------------------------------------------

static canvas_log *read_here(void) {
  static const struct {
    int trial;
    const char *compiler;
    int threads;
  } rows[] = {{1, "A", 1}, {2, "A", 1}, {3, "B", 1}, {4, "A", 2}};
  struct log *log;
  canvas_log *out;
  const char *path = path_of("here.log");
  unlink(path);
  CHECK_INT(log_open(&ctx, path, &log), CANVAS_OK, ctx.message);
  CHECK_ROWS (rows, row) {
    struct record r = made(row->trial);
    const struct machine here = machine_here();
    free(r.machine);
    free(r.compiler);
    r.machine = machine_text(&here);
    r.compiler = mem_strdup(row->compiler);
    r.threads = row->threads;
    CHECK_INT(log_append(&ctx, log, &r), CANVAS_OK, ctx.message);
    record_free(&r);
  }
  log_close(log);
  CHECK_INT(canvas_log_read(&ctx, path, &out), CANVAS_OK, ctx.message);
  return out;
}

static canvas_program *smooth(void) {
  canvas_program *program;
  CHECK_INT(canvas_program_parse(&ctx, PROGRAM, strlen(PROGRAM), &program), CANVAS_OK, ctx.message);
  return program;
}

static void the_api_finds_the_best(void **state) {
  canvas_log *log = read_here();
  canvas_machine *here = canvas_machine_here(), *other;
  char *machine = canvas_machine_print(here);
  char *changed = replaced(machine, "\nline ", "\nline 128\n# ");
  CHECK_INT(canvas_machine_parse(&ctx, changed, strlen(changed), &other), CANVAS_OK, ctx.message);
  canvas_program *program = smooth();
  const struct {
    canvas_log_place place;
    int trial;
    const char *message;
  } rows[] = {
      {{.machine = here, .compiler = "A", .threads = 1}, 2, ""},
      {{.machine = here, .compiler = "A"}, 4, ""},
      {{.machine = here, .compiler = "B"}, 3, ""},
      {{.machine = here}, 4, ""},
      {{.anywhere = true, .threads = 1}, 3, ""},
      {{.machine = here, .compiler = "C"},
       0,
       "the best record of 'smooth' is of another compiler, 'A'"},
      {{.machine = other}, 0, "the best record of 'smooth' is of another machine"},
      {{.machine = here, .threads = 3}, 0, "the best record of 'smooth' is of 2 threads, not of 3"},
  };
  CHECK_ROWS (rows, row) {
    int best = -1;
    ctx.message[0] = '\0';
    canvas_status status = canvas_log_best(&ctx, log, program, &row->place, &best);
    CHECK_INT(status, row->trial ? CANVAS_OK : CANVAS_NONE, row->message);
    CHECK_TEXT(ctx.message, row->message, row->message);
    if (row->trial) CHECK_INT(canvas_log_record(log, best).trial, row->trial, "the best");
  }
  canvas_program_free(program);
  canvas_machine_free(here);
  canvas_machine_free(other);
  canvas_log_free(log);
  canvas_string_free(machine);
  free(changed);
}

// What is bound needs the log no longer.
static void the_api_binds_a_record(void **state) {
  canvas_log *log = read_here();
  canvas_bound *bound, *edited;
  char *text, *line = canvas_log_line(log, 0);
  CHECK(!strncmp(line, RECORD_BEGIN, strlen(RECORD_BEGIN)), line);
  CHECK_INT(canvas_log_bind(&ctx, log, 0, NULL, &bound), CANVAS_OK, ctx.message);
  canvas_log_free(log);
  CHECK_INT(canvas_bound_edit(&ctx, bound, "mark k unroll", 13, &edited), CANVAS_OK, ctx.message);
  canvas_bound_free(bound);
  CHECK_INT(canvas_bound_emit(&ctx, edited, NULL, &text), CANVAS_OK, ctx.message);
  CHECK(strstr(text, "int smooth("), text);
  canvas_string_free(line);
  canvas_string_free(text);
  canvas_bound_free(edited);
}

// Records of format 1 that hold an edited program are counted, and stay in the file.
static void the_api_counts_what_is_outdated(void **state) {
  const char *path = path_of("old.log");
  char *line = made_line(3), *old = replaced(line, "{\"canvas_log\": 2", "{\"canvas_log\": 1");
  char *edited = replaced(old, "\"edits\": null", "\"edited\": \"canvas 1\\nprogram smooth\\n\"");
  canvas_log *log;
  int64_t number, cut;
  const char *why;
  write_bytes(path, edited, strlen(edited) - 1);
  CHECK_INT(append(path, 4, &cut), CANVAS_OK, ctx.message);
  CHECK_INT(cut, 0, "a whole record lacks its line's end");
  CHECK_INT(canvas_log_read(&ctx, path, &log), CANVAS_OK, ctx.message);
  CHECK_INT(canvas_log_count(log), 1, "the new one");
  CHECK_INT(canvas_log_damaged(log, NULL, &why), 0, why);
  CHECK_INT(canvas_log_outdated(log, &number), 1, "the old one");
  CHECK_INT(number, 1, "its line");
  canvas_log_free(log);
  free(line);
  free(old);
  free(edited);
}

static void the_api_counts_and_merges(void **state) {
  canvas_log *log = read_here(), *merged;
  const canvas_log_place anywhere = {.anywhere = true};
  int count;
  int64_t line;
  const char *why;
  canvas_log_task *tasks = canvas_log_tasks(log, &anywhere, &count);
  CHECK_INT(count, 2, "one and two threads");
  CHECK_TEXT(tasks[0].name, "smooth", "the first");
  CHECK_TEXT(tasks[0].task, "45d0e49b2c5932c7", "the first");
  CHECK_INT(tasks[0].trials, 3, "the first");
  CHECK_INT(tasks[1].best, 3, "the second");
  CHECK_INT(tasks[0].last - tasks[0].first, 2, "seconds");
  canvas_log_tasks_free(tasks);
  merged = canvas_log_merge((const canvas_log *const[]){log, log}, 2);
  CHECK_INT(canvas_log_count(merged), canvas_log_count(log), "each once");
  CHECK_INT(canvas_log_damaged(merged, &line, &why), 0, why);
  canvas_log_free(merged);
  canvas_log_free(log);
  canvas_log_free(NULL);
  CHECK_INT(canvas_log_read(&ctx, path_of("none"), &log), CANVAS_IO, "a file that there is not");
}

CHECK_MAIN(
    cmocka_unit_test(records_come_back), cmocka_unit_test(what_is_no_record_is_rejected),
    cmocka_unit_test(records_of_format_1), cmocka_unit_test(what_cannot_be_used_is_passed_over),
    cmocka_unit_test(winograd_is_read_from_the_texts), cmocka_unit_test(tasks_have_names),
    cmocka_unit_test(a_record_gives_the_same_code),
    cmocka_unit_test(what_does_not_bind_says_which_part),
    cmocka_unit_test_setup_teardown(what_is_appended_is_read, make_folder, remove_folder),
    cmocka_unit_test_setup_teardown(a_torn_end_is_cut_off, make_folder, remove_folder),
    cmocka_unit_test_setup_teardown(every_end_of_a_line, make_folder, remove_folder),
    cmocka_unit_test_setup_teardown(what_others_tear_is_cut_off, make_folder, remove_folder),
    cmocka_unit_test_setup_teardown(a_first_line_cut_short_is_damaged, make_folder, remove_folder),
    cmocka_unit_test_setup_teardown(other_files_are_not_touched, make_folder, remove_folder),
    cmocka_unit_test_setup_teardown(what_is_no_file_is_refused, make_folder, remove_folder),
    cmocka_unit_test_setup_teardown(damaged_lines_are_counted, make_folder, remove_folder),
    cmocka_unit_test_setup_teardown(many_records_are_read_quickly, make_folder, remove_folder),
    cmocka_unit_test_setup_teardown(writers_do_not_disturb_each_other, make_folder, remove_folder),
    cmocka_unit_test_setup_teardown(a_killed_writer_leaves_whole_records, make_folder,
                                    remove_folder),
    cmocka_unit_test_setup_teardown(a_full_disk_leaves_no_half_line, make_folder, remove_folder),
    cmocka_unit_test(the_best_is_of_this_place),
    cmocka_unit_test(what_was_timed_in_a_network_comes_first),
    cmocka_unit_test(merging_does_not_depend_on_the_order),
    cmocka_unit_test(ties_do_not_depend_on_the_order),
    cmocka_unit_test_setup_teardown(the_api_finds_the_best, make_folder, remove_folder),
    cmocka_unit_test_setup_teardown(the_api_binds_a_record, make_folder, remove_folder),
    cmocka_unit_test_setup_teardown(the_api_counts_what_is_outdated, make_folder, remove_folder),
    cmocka_unit_test_setup_teardown(the_api_counts_and_merges, make_folder, remove_folder))
