// One object of every kind of canvas.h, and every function's name and parameters as the header declares
// them: for tests that go over the whole interface.
#ifndef CANVAS_TESTS_API_OBJECTS_H
#define CANVAS_TESTS_API_OBJECTS_H

#include "check.h"

#include <stdio.h>
#include <unistd.h>

#include "canvas.h"

#define KERNEL_TEXT                                                                        \
  "canvas 1\nkernel conv\na = input\nb = unfold a over=H,W k=K\nc = fc b to=x0\nd = fc c " \
  "to=C\nout d\n"
#define PROGRAM_TEXT                                                                               \
  "canvas 1\nprogram product\nin X f32 [n:4, k:3]\nin W f32 [k:3, m:2] const\nP[n:4, k:3] = X[n, " \
  "k] * 2\n"                                                                                       \
  "Y[n:4, m:2] = P[n, k] * W[k, m] // sum k:3\nout Y\n"
#define NETWORK_TEXT                                                                 \
  "network small\nprogram product\nin X f32 [n:4, k:3]\nin W f32 [k:3, m:2] const\n" \
  "Y[n:4, m:2] = X[n, k] * W[k, m] // sum k:3\nout Y\nend\n"                         \
  "in x f32 [4, 3]\nweight w f32 [3, 2]\ny f32 [4, 2] = product(x, w)\nout y\n"
#define CONVOLUTION_TEXT                                                                      \
  "canvas 1\nprogram conv\nin X f32 [h:10, w:10, i:4]\nin W f32 [a:3, b:3, i:4, o:8] const\n" \
  "Y[h:8, w:8, o:8] = X[h+a, w+b, i] * W[a, b, i, o] // sum a:3, b:3, i:4\nout Y\n"
#define SPARSE_TEXT                                                                               \
  "canvas 1\nprogram rows\nin V f32 [e:4]\nin ptr i32 [r:3] 0..5 rising\nin ind i32 [e:4] 0..6\n" \
  "in X f32 [k:6]\nY[r:2] = V[e] * X[ind[e]] // sum e:ptr[r]..ptr[r+1]\nout Y\n"
#define SCHEDULE_TEXT "canvas 1\nschedule s\nn, k => @P = n, k\nn, m, k => @Y = n, m // k\n"

static struct {
  canvas_context *ctx;
  canvas_targets *targets;
  canvas_budget *budget;
  canvas_kernel *kernel;
  canvas_pack *pack;
  canvas_sampler *sampler;
  canvas_program *program, *convolution, *sparse;
  canvas_network *network;
  canvas_schedule *schedule;
  canvas_machine *machine;
  canvas_bound *bound;
  canvas_code *code;
  canvas_network_code *network_code;
  canvas_measurer *measurer;
  canvas_log *log;
  char *machine_text;
  char folder[64], path[96];  // the cache is in it; a log
} api;

#define MUST(call) CHECK_INT(call, CANVAS_OK, canvas_context_message(api.ctx))

static inline void api_open(void) {
  canvas_context *ctx = api.ctx = canvas_context_new();
  CHECK(temporary_folder(api.folder, sizeof api.folder), "a folder");
  snprintf(api.path, sizeof api.path, "%s/log", api.folder);
  setenv("CANVAS_CACHE", api.folder, 1);
  MUST(canvas_targets_parse(ctx, "8,6,6;16,4,4", 12, &api.targets));
  MUST(canvas_budget_parse(ctx, "macs=2x,params=2x", 17, &api.budget));
  MUST(canvas_kernel_parse(ctx, KERNEL_TEXT, strlen(KERNEL_TEXT), &api.kernel));
  MUST(canvas_kernel_bind(ctx, api.kernel, "C=4,H=5,W=3,x0=2", 16, &api.pack));
  MUST(canvas_sampler_new(ctx, api.targets, "", 0, 1, &api.sampler));
  MUST(canvas_program_parse(ctx, PROGRAM_TEXT, strlen(PROGRAM_TEXT), &api.program));
  MUST(canvas_program_parse(ctx, CONVOLUTION_TEXT, strlen(CONVOLUTION_TEXT), &api.convolution));
  MUST(canvas_program_parse(ctx, SPARSE_TEXT, strlen(SPARSE_TEXT), &api.sparse));
  MUST(canvas_network_parse(ctx, NETWORK_TEXT, strlen(NETWORK_TEXT), &api.network));
  MUST(canvas_schedule_parse(ctx, SCHEDULE_TEXT, strlen(SCHEDULE_TEXT), &api.schedule));
  api.machine = canvas_machine_here();
  api.machine_text = canvas_machine_print(api.machine);
  MUST(canvas_bound_new(ctx, api.program, api.schedule, api.machine, &api.bound));
  const canvas_log_place place = {.machine = api.machine, .compiler = "cc"};
  const canvas_verdict time = {.median = 1, .lower = 1, .upper = 1, .repeats = 3};
  MUST(canvas_log_add_network(ctx, api.path, api.bound, &place, &time));
  MUST(canvas_log_read(ctx, api.path, &api.log));
  MUST(canvas_code_open(ctx, api.bound, &api.code));
  MUST(canvas_network_compile(ctx, api.network, NULL, &api.network_code));
  MUST(canvas_measurer_new(ctx, api.program, NULL, &api.measurer));
}

static inline int api_close(void) {
  char command[128];
  canvas_measurer_free(api.measurer);
  canvas_network_code_free(api.network_code);
  canvas_code_close(api.code);
  canvas_log_free(api.log);
  canvas_bound_free(api.bound);
  canvas_machine_free(api.machine);
  canvas_schedule_free(api.schedule);
  canvas_network_free(api.network);
  canvas_program_free(api.sparse);
  canvas_program_free(api.convolution);
  canvas_program_free(api.program);
  canvas_string_free(api.machine_text);
  canvas_sampler_free(api.sampler);
  canvas_pack_free(api.pack);
  canvas_kernel_free(api.kernel);
  canvas_budget_free(api.budget);
  canvas_targets_free(api.targets);
  canvas_context_free(api.ctx);
  snprintf(command, sizeof command, "rm -rf %s", api.folder);
  return system(command);
}

// ---- every function was tried ----------------------------------------------------------------------

enum { API_FUNCTIONS = 400 };
static char api_tried[API_FUNCTIONS][64];
static int api_tries;

// `call` begins with the function's name.
static inline void api_note(const char *call) {
  char *name = api_tried[api_tries];
  size_t length = strcspn(call, "(");
  snprintf(name, sizeof api_tried[0], "%.*s", (int)length, call);
  for (int i = 0; i < api_tries; i++)
    if (!strcmp(api_tried[i], name)) return;
  CHECK(++api_tries < API_FUNCTIONS, "room for names");
}

static inline bool api_was_tried(const char *name) {
  for (int i = 0; i < api_tries; i++)
    if (!strcmp(api_tried[i], name)) return true;
  return false;
}

// The header without its comments, to be freed.
static inline char *api_header(void) {
  FILE *file = fopen(CANVAS_SOURCE "/include/canvas.h", "r");
  CHECK(file, "include/canvas.h");
  char *text = calloc(1, 1 << 20);
  size_t length = fread(text, 1, (1 << 20) - 1, file), to = 0;
  fclose(file);
  for (size_t i = 0; i < length; i++) {
    if (text[i] == '/' && text[i + 1] == '*') i = (size_t)(strstr(text + i, "*/") - text) + 2;
    text[to++] = text[i];
  }
  text[to] = '\0';
  return text;
}

// Fails for every function of the header that was not tried and is not among `others`, with blanks around.
static inline void api_check_all_tried(const char *others) {
  char *header = api_header(), name[64], spaced[66];
  int count = 0, forgotten = 0;
  for (char *at = header; (at = strstr(at, "canvas_")); at += strlen(name)) {
    size_t length = strspn(at, "abcdefghijklmnopqrstuvwxyz_0123456789");
    snprintf(name, sizeof name, "%.*s", (int)length, at);
    if (at[length] != '(') continue;
    count++;
    snprintf(spaced, sizeof spaced, " %s ", name);
    if (api_was_tried(name) || strstr(others, spaced)) continue;
    print_error("%s is not tried\n", name);
    forgotten++;
  }
  free(header);
  CHECK(count > 130, "the header's functions were found");
  CHECK_INT(forgotten, 0, "functions of canvas.h that this test does not try");
}

#endif
