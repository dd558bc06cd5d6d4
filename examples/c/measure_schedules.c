/* A program compiled under schedules from C: measured against the interpreter, the best one called.
 *
 *     measure FILE.program [FILE.schedule...]
 *
 * The default schedule and the given ones are bound for this machine and measured; the fastest correct
 * one is compiled, loaded and run on data, and its first output compared with the interpreter's.
 */
#include <canvas.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { CANDIDATES = 32 };

struct job {
  canvas_context *ctx;
  canvas_program *program;
  canvas_machine *machine;
  const char *name[CANDIDATES];
  canvas_schedule *schedule[CANDIDATES]; /* NULL: the default one */
  canvas_bound *bound[CANDIDATES];
  int count;
};

static void must(const struct job *j, canvas_status status, const char *what) {
  if (status == CANVAS_OK) return;
  fprintf(stderr, "measure: %s: %s\n", what, canvas_context_message(j->ctx));
  exit(2);
}

/* A whole file; *length its bytes. */
static char *read_file(const char *path, size_t *length) {
  FILE *file = fopen(path, "rb");
  char *text = malloc(CANVAS_TEXT_LIMIT);
  if (!file || !text) {
    fprintf(stderr, "measure: cannot read '%s'\n", path);
    exit(2);
  }
  *length = fread(text, 1, CANVAS_TEXT_LIMIT, file);
  fclose(file);
  return text;
}

static void read_program(struct job *j, const char *path) {
  size_t length;
  char *text = read_file(path, &length);
  must(j, canvas_program_parse(j->ctx, text, length, &j->program), path);
  free(text);
}

/* path NULL: the default schedule. A schedule that the program or the machine rejects is left out. */
static void add_candidate(struct job *j, const char *path) {
  int i = j->count;
  if (i == CANDIDATES) return;
  j->name[i] = path ? path : "default";
  j->schedule[i] = NULL;
  if (path) {
    size_t length;
    char *text = read_file(path, &length);
    must(j, canvas_schedule_parse(j->ctx, text, length, &j->schedule[i]), path);
    free(text);
  }
  if (canvas_bound_new(j->ctx, j->program, j->schedule[i], j->machine, &j->bound[i]) == CANVAS_OK) {
    j->count++;
  } else {
    printf("%s: %s\n", j->name[i], canvas_context_message(j->ctx));
    canvas_schedule_free(j->schedule[i]);
  }
}

/* The fastest candidate that is correct, -1 without one. */
static int measure(const struct job *j) {
  canvas_verdict verdicts[CANDIDATES];
  canvas_measurer *measurer;
  int best = -1;
  must(j, canvas_measurer_new(j->ctx, j->program, NULL, &measurer), "measurer");
  must(j,
       canvas_measurer_run(j->ctx, measurer, (const canvas_bound *const *)j->bound, j->count,
                           verdicts),
       "measure");
  for (int i = 0; i < j->count; i++) {
    const canvas_verdict *v = &verdicts[i];
    if (v->failure)
      printf("%s: %s: %s\n", j->name[i], canvas_failure_name(v->failure), v->message);
    else
      printf("%s: correct, %.3g us\n", j->name[i], 1e6 * v->median);
    if (!v->failure && (best < 0 || v->median < verdicts[best].median)) best = i;
  }
  canvas_measurer_free(measurer);
  return best;
}

/* ---- on data ----------------------------------------------------------------------------------- */

struct data {
  double *exact[CANVAS_RANK_MAX]; /* inputs for the interpreter */
  void *stored[CANVAS_RANK_MAX];  /* ... and for the code */
};

/* f32 only, to keep the example short. */
static float *as_float(const double *from, int64_t count) {
  float *to = malloc((size_t)count * sizeof *to + 1);
  for (int64_t i = 0; to && i < count; i++) to[i] = (float)from[i];
  return to;
}

static void fill(const struct job *j, struct data *d) {
  for (int i = 0; i < canvas_program_inputs(j->program); i++) {
    canvas_tensor t = canvas_program_input(j->program, i);
    if (t.dtype != CANVAS_F32 || i == CANVAS_RANK_MAX) {
      fprintf(stderr, "measure: input '%s' is not f32\n", t.name);
      exit(2);
    }
    d->exact[i] = malloc((size_t)t.elements * sizeof(double));
    canvas_program_fill(j->program, i, 1, d->exact[i]);
    d->stored[i] = as_float(d->exact[i], t.elements);
    for (int64_t k = 0; k < t.elements; k++) d->exact[i][k] = ((float *)d->stored[i])[k];
  }
}

static void call(const struct job *j, int best) {
  struct data d = {{NULL}, {NULL}};
  canvas_tensor y = canvas_program_output(j->program, 0);
  double *expected = malloc((size_t)y.elements * sizeof *expected), worst = 0;
  float *got = malloc((size_t)y.elements * sizeof *got);
  canvas_code *code;
  if (canvas_program_outputs(j->program) != 1 || y.dtype != CANVAS_F32) exit(2);
  fill(j, &d);
  must(j, canvas_code_open(j->ctx, j->bound[best], &code), "compile");
  must(j, canvas_code_call(j->ctx, code, (const void *const *)d.stored, (void *[]){got}), "call");
  must(j,
       canvas_program_evaluate(j->ctx, j->program, (const double *const *)d.exact, 0, y.elements,
                               NULL, expected),
       "interpreter");
  for (int64_t i = 0; i < y.elements; i++) worst = fmax(worst, fabs(got[i] - expected[i]));
  printf("%s of %lld elements under %s: %s\n", y.name, (long long)y.elements, j->name[best],
         worst < 1e-3 ? "equal to the interpreter's within 0.001" : "wrong");
  canvas_code_close(code);
  for (int i = 0; i < canvas_program_inputs(j->program); i++) free(d.exact[i]), free(d.stored[i]);
  free(expected);
  free(got);
}

int main(int argc, char **argv) {
  struct job j = {.ctx = canvas_context_new(), .machine = canvas_machine_here()};
  if (argc < 2) {
    fprintf(stderr, "usage: measure FILE.program [FILE.schedule...]\n");
    return 2;
  }
  read_program(&j, argv[1]);
  add_candidate(&j, NULL);
  for (int i = 2; i < argc; i++) add_candidate(&j, argv[i]);
  int best = measure(&j);
  if (best >= 0) call(&j, best);
  for (int i = 0; i < j.count; i++) {
    canvas_bound_free(j.bound[i]);
    canvas_schedule_free(j.schedule[i]);
  }
  canvas_program_free(j.program);
  canvas_machine_free(j.machine);
  canvas_context_free(j.ctx);
  return best < 0;
}
