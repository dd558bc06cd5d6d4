/* Interleaves searches: each has its own thread, but only one runs at a time, like coroutines. See
 * tune_many.h.
 *
 * A search waits before each batch of trials. When the budget is spent, it continues with its
 * finals and does not wait again.
 */
#include "tune/tune_many.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory_call.h"
#include "program/program_cost.h"
#include "run/child.h"
#include "tune/rates_here.h"
#include "tune/same_but_sizes.h"
#include "tune/task_gradient.h"

static const double FOR_FINALS = 0.3; /* share of the time for finals */

struct many {
  const struct machine *machine;
  const struct tune_options *options;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  struct child_stop stop; /* child_stop of the caller's thread */
  int whose;              /* the running search; -1: the scheduler runs */
  bool over;              /* the budget is spent */
  struct mem_call *call;  /* active call of the caller's thread; NULL: none */
  size_t wanted;          /* bytes that a search failed to allocate; 0: none failed */
  double started;
};

struct line {
  struct many *many;
  struct tune_task *task;
  int index;
  pthread_t thread;
  struct search *search; /* its state, set from the first batch to its end */
  bool began, ended;
};

/* ---- switching threads ----------------------------------------------------------------------- */

static void wait_for(struct many *m, int whose) {
  while (m->whose != whose) pthread_cond_wait(&m->changed, &m->lock);
}

static void hand_over(struct many *m, int whose) {
  m->whose = whose;
  pthread_cond_broadcast(&m->changed);
}

/* Lets a search run until it waits again or ends. */
static void resume(struct line *l) {
  struct many *m = l->many;
  pthread_mutex_lock(&m->lock);
  hand_over(m, l->index);
  wait_for(m, -1);
  pthread_mutex_unlock(&m->lock);
}

/* Waits in the search's thread; false: the budget is spent. */
static bool wait_to_measure(struct search *s, void *data) {
  struct line *l = data;
  struct many *m = l->many;
  pthread_mutex_lock(&m->lock);
  l->search = s;
  hand_over(m, -1);
  wait_for(m, l->index);
  bool go_on = !m->over;
  pthread_mutex_unlock(&m->lock);
  if (m->wanted) mem_fail(m->wanted); /* ends all searches */
  return go_on;
}

static bool show(const struct search *s, void *data) {
  const struct line *l = data;
  const struct tune_options *o = l->many->options;
  return !o->progress || o->progress(s, o->data);
}

static bool has_enough(const struct many *m) {
  return m->options->enough && m->options->enough(m->options->data);
}

static bool is_enough(void *data) {
  const struct line *l = data;
  return has_enough(l->many);
}

static void search_for(struct line *l) {
  struct many *m = l->many;
  struct tune_options options = *m->options;
  canvas_context ctx = {.message = ""};
  child_stop_when(m->stop.requested, m->stop.data);
  options.may_measure = wait_to_measure;
  options.progress = show;
  options.enough = is_enough;
  options.data = l;
  options.seconds = 0; /* time is shared by waiting */
  l->task->status = tune(&ctx, l->task->program, m->machine, &options, &l->task->tuned);
  memcpy(l->task->message, ctx.message, sizeof l->task->message);
}

/* Runs a search as part of the caller's call: if memory runs out, all searches end and the call
 * fails. */
static void search_in_call(struct line *l) {
  struct many *m = l->many;
  struct mem_call part;
  mem_enter_part(&part, m->call);
  if (setjmp(part.failed)) {
    m->wanted = part.wanted;
    return;
  }
  search_for(l);
  mem_leave(&part);
}

static void *run_line(void *data) {
  struct line *l = data;
  struct many *m = l->many;
  pthread_mutex_lock(&m->lock);
  wait_for(m, l->index);
  pthread_mutex_unlock(&m->lock);
  if (!m->wanted && m->call)
    search_in_call(l);
  else if (!m->wanted)
    search_for(l);
  pthread_mutex_lock(&m->lock);
  l->ended = true;
  l->search = NULL;
  hand_over(m, -1);
  pthread_mutex_unlock(&m->lock);
  return NULL;
}

/* ---- the budget ------------------------------------------------------------------------------ */

struct shared {
  struct many *many;
  struct line *lines;
  struct task_state *states;
  int count;
  int trials; /* maximum number of trials of all searches */
};

/* The first program that differs only in sizes. */
static int similar_to(const struct tune_task *tasks, int task) {
  struct buf a = {0}, b = {0};
  int first = 0;
  program_print(tasks[task].program, &a);
  for (; first < task; first++) {
    b.length = 0;
    program_print(tasks[first].program, &b);
    if (same_but_sizes(a.text, b.text)) break;
  }
  buf_free(&a);
  buf_free(&b);
  return first;
}

static int spent(const struct shared *s) {
  int trials = 0;
  for (int i = 0; i < s->count; i++) trials += s->states[i].trials;
  return trials;
}

static void note(struct shared *s, int i) {
  const struct search *search = s->lines[i].search;
  struct task_state *t = &s->states[i];
  t->ended = s->lines[i].ended;
  if (t->ended) t->trials = s->lines[i].task->tuned.trials;
  if (!search) return;
  double best = search->best < 0 ? INFINITY : search->trials.data[search->best].verdict.median;
  task_note(t, search->trials.count, best * (double)search->images / (double)search->tried);
}

static bool is_over(const struct many *m, const struct shared *s) {
  double seconds = m->options->seconds * (1 - FOR_FINALS);
  bool late = seconds > 0 && spent(s) > 0 && clock_wall() - m->started >= seconds;
  return m->wanted || child_stopped() || spent(s) >= s->trials || late || has_enough(m);
}

static void share(struct many *m, struct shared *s) {
  for (int i = 0; i < s->count; i++) { /* runs each search up to its first batch */
    if (!s->lines[i].ended) resume(&s->lines[i]);
    s->states[i].ended = s->lines[i].ended;
    const struct search *search = s->lines[i].search;
    if (search) s->states[i].expected = search_predict(search, (struct tune_candidate){0, 0});
  }
  for (int next; !is_over(m, s) && (next = task_next(s->states, s->count)) >= 0;) {
    struct search *search = s->lines[next].search;
    search->budget.trials = search->trials.count + s->trials - spent(s);
    resume(&s->lines[next]);
    note(s, next);
  }
  m->over = true;
  for (int i = 0; i < s->count; i++)
    while (!s->lines[i].ended) resume(&s->lines[i]);
}

/* ---- running --------------------------------------------------------------------------------- */

static canvas_status worst(canvas_context *ctx, const struct tune_task *tasks, int count) {
  for (int i = 0; i < count; i++)
    if (tasks[i].status != CANVAS_OK && tasks[i].status != CANVAS_NONE)
      return fail(ctx, tasks[i].status, "%s", tasks[i].message);
  return CANVAS_OK;
}

/* Ends all searches, also when the call fails. */
static void close_many(void *data) {
  struct shared *s = data;
  struct many *m = s->many;
  for (int i = 0; i < s->count; i++)
    while (s->lines[i].began && !s->lines[i].ended) resume(&s->lines[i]);
  for (int i = 0; i < s->count; i++)
    if (s->lines[i].began) pthread_join(s->lines[i].thread, NULL);
  pthread_cond_destroy(&m->changed);
  pthread_mutex_destroy(&m->lock);
}

static void fail_many(void *data) {
  const struct shared *s = data;
  if (!s->many->wanted) s->many->wanted = 1;
  close_many(data);
}

/* Initialises all states before the first thread starts. */
static void open_states(struct shared *s, const struct tune_task *tasks) {
  for (int i = 0; i < s->count; i++)
    s->states[i] = (struct task_state){.weight = tasks[i].weight,
                                       .flops = 1 + program_flops(tasks[i].program),
                                       .best = INFINITY,
                                       .similar = similar_to(tasks, i)};
}

static void start_line(canvas_context *ctx, struct shared *s, struct tune_task *task, int i) {
  struct line *l = &s->lines[i];
  *l = (struct line){.many = s->many, .task = task, .index = i};
  task->tuned = (struct tuned){0};
  l->began = pthread_create(&l->thread, NULL, run_line, l) == 0;
  if (l->began) return;
  l->ended = s->states[i].ended = true;
  task->status = fail(ctx, CANVAS_IO, "no memory for the thread of a search");
  memcpy(task->message, ctx->message, sizeof task->message);
}

canvas_status tune_many(canvas_context *ctx, struct tune_task *tasks, int count,
                        const struct machine *machine, const struct tune_options *options) {
  struct many m = {.machine = machine,
                   .options = options,
                   .stop = child_stop_current(),
                   .whose = -1,
                   .call = mem_current()};
  struct shared s = {.many = &m, .count = count};
  const struct method *method = options->method ? options->method : method_find("quick");
  struct mem_deferred closing;
  struct rates rates;
  TRY(rates_here(ctx, machine, &rates)); /* not counted in the time, since it happens once */
  m.started = clock_wall();
  s.trials = options->trials > 0 ? options->trials : method->trials * count;
  s.lines = mem_alloc((size_t)count * sizeof *s.lines + 1);
  s.states = mem_alloc((size_t)count * sizeof *s.states + 1);
  open_states(&s, tasks);
  pthread_mutex_init(&m.lock, NULL);
  pthread_cond_init(&m.changed, NULL);
  mem_defer(&closing, fail_many, &s);
  for (int i = 0; i < count; i++) start_line(ctx, &s, &tasks[i], i);
  share(&m, &s);
  mem_undefer(&closing);
  close_many(&s);
  mem_free(s.lines);
  mem_free(s.states);
  if (m.wanted) mem_fail(m.wanted);
  return worst(ctx, tasks, count);
}
