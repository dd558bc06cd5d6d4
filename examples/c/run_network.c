/* A network of fp32 compiled, loaded and run from C, beside what the interpreter says.
 *
 *     run_network FILE.net
 */
#include <canvas.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { TENSORS = 256 };

static canvas_context *ctx;

static void must(canvas_status status) {
  if (status == CANVAS_OK) return;
  fprintf(stderr, "run_network: %s\n", canvas_context_message(ctx));
  exit(2);
}

static canvas_network *read_network(const char *path) {
  FILE *file = fopen(path, "rb");
  char *text = malloc(CANVAS_TEXT_LIMIT);
  canvas_network *network;
  if (!file || !text) {
    fprintf(stderr, "run_network: cannot read '%s'\n", path);
    exit(2);
  }
  must(canvas_network_parse(ctx, text, fread(text, 1, CANVAS_TEXT_LIMIT, file), &network));
  fclose(file);
  free(text);
  return network;
}

/* Tensors of one role, as numbers and as the code takes them. */
struct tensors {
  int count;
  double *number[TENSORS];
  void *memory[TENSORS];
};

static struct tensors make(const canvas_network *n, canvas_role role) {
  struct tensors t = {.count = canvas_network_count(n, role)};
  for (int i = 0; i < t.count && i < TENSORS; i++) {
    int64_t elements = canvas_network_tensor(n, role, i).elements;
    float *stored = t.memory[i] = malloc((size_t)elements * sizeof(float));
    t.number[i] = malloc((size_t)elements * sizeof(double));
    if (role == CANVAS_OUTPUT) continue;
    canvas_network_fill(n, role, i, 1, t.number[i]);
    for (int64_t k = 0; k < elements; k++) t.number[i][k] = stored[k] = (float)t.number[i][k];
  }
  return t;
}

static double difference(const canvas_network *n, const struct tensors *outputs) {
  double worst = 0;
  for (int i = 0; i < outputs->count; i++)
    for (int64_t k = 0; k < canvas_network_tensor(n, CANVAS_OUTPUT, i).elements; k++)
      worst = fmax(worst, fabs(((float *)outputs->memory[i])[k] - outputs->number[i][k]));
  return worst;
}

int main(int argc, char **argv) {
  canvas_network_code *code;
  if (argc != 2) return fprintf(stderr, "usage: run_network FILE.net\n"), 2;
  ctx = canvas_context_new();
  canvas_network *n = read_network(argv[1]);
  must(canvas_network_optimize(ctx, n, NULL, NULL));
  struct tensors inputs = make(n, CANVAS_INPUT), weights = make(n, CANVAS_WEIGHT);
  struct tensors outputs = make(n, CANVAS_OUTPUT);
  must(canvas_network_compile(ctx, n, NULL, &code));
  must(canvas_network_code_load(ctx, code, (const void *const *)weights.memory));
  must(canvas_network_code_run(ctx, code, (const void *const *)inputs.memory, outputs.memory));
  must(canvas_network_evaluate(ctx, n, (const double *const *)inputs.number,
                               (const double *const *)weights.number, outputs.number));
  canvas_network_facts facts = canvas_network_code_describe(code);
  for (int i = 0; i < facts.calls; i++) {
    canvas_network_call call = canvas_network_code_call(code, i);
    printf("%s = %s, %lld operations\n", call.results, call.program, (long long)call.flops);
  }
  bool equal = difference(n, &outputs) < 1e-3;
  printf("%s: %s the interpreter's within 0.001\n", facts.function, equal ? "equal to" : "not");
  canvas_network_code_free(code);
  canvas_network_free(n);
  canvas_context_free(ctx);
  return !equal;
}
