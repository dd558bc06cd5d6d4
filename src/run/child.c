/* Runs a function or program in a child process with limits. See child.h. */
#define _GNU_SOURCE /* MAP_ANONYMOUS, vfork, execvpe, clock_getcpuclockid */
#include "run/child.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#include <sys/syscall.h>
#endif

#include "base/memory_call.h"
#include "base/number.h"

double clock_wall(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static _Thread_local double of_children; /* processor seconds of ended children */

double clock_processor(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec + of_children;
}

void *memory_shared(size_t size) {
  void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? NULL : memory;
}

void memory_unshare(void *memory, size_t size) {
  if (memory) munmap(memory, size);
}

/* Bytes mapped by this process; 0: unknown. Safe in a signal handler. */
static int64_t mapped_bytes(void) {
  char text[64];
  int file = open("/proc/self/statm", O_RDONLY);
  if (file < 0) return 0;
  ssize_t length = read(file, text, sizeof text - 1);
  close(file);
  int64_t pages = 0;
  for (ssize_t i = 0; i < length && text[i] >= '0' && text[i] <= '9'; i++)
    pages = 10 * pages + (text[i] - '0');
  return pages * sysconf(_SC_PAGESIZE);
}

void child_keep(struct child_files *files, int file) {
  int at = files->count;
  for (int i = 0; i < files->count; i++)
    if (files->data[i] == file) return;
  VEC_PUSH(files, file);
  for (; at && files->data[at - 1] > file; at--) files->data[at] = files->data[at - 1];
  files->data[at] = file;
}

/* ---- in the child: the note of a crash ------------------------------------------------------- */

struct note {
  int signal; /* 0: no signal was caught */
  bool known, stack, memory;
  uint64_t address;
};

static struct note *crash_note; /* shared with the parent process */
static uint64_t stack_top, stack_size;
static int64_t memory_full; /* mapped bytes from which a crash counts as out of memory; 0: never */

/* Signal handler that writes the note. A stack overflow touches addresses just below the stack. */
static void write_note(int signal, siginfo_t *info, void *context) {
  (void)context;
  struct note *n = crash_note;
  const uint64_t slack = 1 << 20;
  bool no_memory = errno == ENOMEM; /* from an allocation whose failure was ignored */
  n->known = (signal == SIGSEGV || signal == SIGBUS) && info->si_code > 0 && info->si_code < 0x80;
  n->address = n->known ? (uint64_t)(uintptr_t)info->si_addr : 0;
  n->stack = n->known && n->address < stack_top && stack_top - n->address < stack_size + slack &&
             stack_top - n->address > stack_size - slack;
  n->memory = no_memory || (memory_full && mapped_bytes() > memory_full);
  n->signal = signal;
  raise(signal); /* delivered on return; ends the process */
}

static void catch_crashes(void) {
  static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
  static char handler_stack[1 << 16];
  stack_t stack = {.ss_sp = handler_stack, .ss_size = sizeof handler_stack};
  struct sigaction catch = {.sa_sigaction = write_note,
                            .sa_flags = SA_SIGINFO | SA_ONSTACK | (int)SA_RESETHAND};
  struct rlimit limit;
  stack_top = (uint64_t)(uintptr_t)__builtin_frame_address(0); /* right also under sanitizers */
  stack_size = !getrlimit(RLIMIT_STACK, &limit) && limit.rlim_cur != RLIM_INFINITY
                   ? (uint64_t)limit.rlim_cur
                   : (uint64_t)8 << 20;
  sigemptyset(&catch.sa_mask);
  sigaltstack(&stack, NULL);
  for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) sigaction(signals[i], &catch, NULL);
}

/* ---- in the child: setup --------------------------------------------------------------------- */

struct task {
  int (*work)(void *data); /* function to call; NULL: the program `words` runs in `folder` */
  void *data;
  char *const *words;
  char *const *environment; /* environment of the program */
  const char *folder;
  const struct child_limits *limits;
  struct note *note;
  pid_t parent, group; /* group: 0 for a group of its own */
  int pipe[2];         /* carries what the child prints */
};

static void limit(int resource, int64_t value) {
  struct rlimit both = {(rlim_t)value, (rlim_t)value}, now;
  if (!getrlimit(resource, &now) && now.rlim_max < both.rlim_max) both.rlim_max = now.rlim_max;
  if (both.rlim_cur > both.rlim_max) both.rlim_cur = both.rlim_max;
  setrlimit(resource, &both);
}

/* The hard limit is a second later, so that SIGXCPU comes first and not SIGKILL. */
static void limit_processor(int64_t seconds) {
  struct rlimit both = {(rlim_t)seconds, (rlim_t)seconds + 1}, now;
  if (!getrlimit(RLIMIT_CPU, &now) && now.rlim_max < both.rlim_max)
    limit(RLIMIT_CPU, seconds);
  else
    setrlimit(RLIMIT_CPU, &both);
}

static void set_limits(const struct task *t) {
  const struct child_limits *l = t->limits;
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_FSIZE, l->file);
  limit_processor(((int64_t)ceil(l->seconds * (l->threads > 1 ? l->threads : 1)) + 1) *
                  (l->step ? l->steps + 1 : 1));
  if (!l->memory) return;
  int64_t most = l->memory + (t->work ? mapped_bytes() : 0);
  memory_full = most - l->memory / 8;
  limit(RLIMIT_AS, most);
}

static void default_signals(void) {
  struct sigaction normal = {.sa_handler = SIG_DFL};
  sigset_t none;
  sigemptyset(&normal.sa_mask);
  for (int s = 1; s < 32; s++)
    if (s != SIGKILL && s != SIGSTOP) sigaction(s, &normal, NULL);
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Closes files from `first` through `last`; -1: all from `first` on. */
static void close_files(int first, int last) {
#ifdef SYS_close_range
  if (last >= 0 && last < first) return;
  if (!syscall(SYS_close_range, (unsigned)first, last < 0 ? ~0u : (unsigned)last, 0)) return;
#endif
  int most = (int)sysconf(_SC_OPEN_MAX);
  if (most < 0 || most > 4096) most = 4096;
  for (int file = first; file < most && (last < 0 || file <= last); file++) close(file);
}

static void close_others(const struct child_files *kept) {
  int first = 3;
  for (int i = 0; kept && i < kept->count; i++) {
    close_files(first, kept->data[i] - 1);
    if (kept->data[i] >= first) first = kept->data[i] + 1;
  }
  close_files(first, -1);
}

/* Sets standard input and output; -1: /dev/null. Exits if that fails, before it could read or write
 * files of the user. */
static void own_files(int input, int output, const struct child_files *kept) {
  int nothing = open("/dev/null", O_RDWR);
  input = fcntl(input < 0 ? nothing : input, F_DUPFD, 3); /* files 0, 1 or 2 may have been closed */
  output = fcntl(output < 0 ? nothing : output, F_DUPFD, 3);
  if (dup2(input, 0) || dup2(output, 1) != 1 || dup2(output, 2) != 2) _exit(CHILD_NO_PROGRAM);
  close_others(kept);
}

static void die_with(pid_t parent) {
#ifdef __linux__
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(0); /* the parent ended before the call */
#else
  (void)parent;
#endif
}

static void be_child(const struct task *t) {
  die_with(t->parent);
  if (setpgid(0, t->group)) setpgid(0, 0);
  default_signals();
  own_files(-1, t->pipe[1], t->work ? t->limits->files : NULL);
}

static _Noreturn void be_work(const struct task *t) {
  mem_in_child();
  be_child(t);
  crash_note = t->note;
  catch_crashes();
  set_limits(t);
  errno = 0;
  _exit(t->work(t->data));
}

/* ---- programs -------------------------------------------------------------------------------- */

/* Starts a program. A fork of a process with PyTorch takes 10 ms for its page tables; vfork lends
 * the memory instead, and this thread waits until the program has started. Signal handlers are
 * blocked meanwhile, and code before execvpe changes only its own variables. */
static pid_t start_program(void (*be)(const void *data), const void *data) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  pid_t child = vfork();
  if (child == 0) be(data);
  int why = errno;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  errno = why;
  return child;
}

static _Noreturn void be_program(const void *data) {
  const struct task *t = data;
  be_child(t);
  bool there = !chdir(t->folder);
  set_limits(t);
  if (there) execvpe(t->words[0], t->words, t->environment);
  const char *why = strerror(errno);
  if (write(1, why, strlen(why)) < 0) _exit(CHILD_NO_PROGRAM);
  _exit(CHILD_NO_PROGRAM);
}

/* Our environment, with English messages and temporary files in `folder`. The array and the text of
 * the folder are one allocation; other strings are borrowed. */
static char **program_environment(const char *folder) {
  static char english[] = "LC_ALL=C";
  static const char temporary[] = "TMPDIR=";
  size_t count = 0, kept = 0;
  while (environ && environ[count]) count++;
  size_t list = (count + 3) * sizeof(char *), text = sizeof temporary + strlen(folder);
  char **all = mem_alloc(list + text);
  for (size_t i = 0; i < count; i++)
    if (strncmp(environ[i], "LC_ALL=", 7) && strncmp(environ[i], temporary, 7))
      all[kept++] = environ[i];
  all[kept++] = english;
  all[kept] = (char *)all + list;
  snprintf(all[kept++], text, "%s%s", temporary, folder);
  all[kept] = NULL;
  return all;
}

static pid_t start_task(const struct task *t) {
  return t->work ? fork() : start_program(be_program, t);
}

/* ---- the watcher of a program ---------------------------------------------------------------- */

/* Kills the group of a program if this process is killed: a watcher process waits for the end of a
 * pipe that only this process holds open. It starts before the program, which joins its group. */
struct watcher {
  pid_t process; /* process of the watcher; -1: none */
  int pipe;
};

static _Noreturn void be_watcher(const void *data) {
  const int *pipe = data;
  if (setpgid(0, 0)) _exit(CHILD_NO_PROGRAM); /* otherwise it would kill our group */
  default_signals();
  own_files(*pipe, -1, NULL);
  execl("/bin/sh", "sh", "-c", "read line; kill -KILL 0", (char *)NULL);
  _exit(CHILD_NO_PROGRAM);
}

static struct watcher watch(void) {
  struct watcher w = {-1, -1};
  int ends[2];
  if (pipe(ends)) return w;
  fcntl(ends[1], F_SETFD, FD_CLOEXEC);
  w.process = start_program(be_watcher, &ends[0]);
  close(ends[0]);
  w.pipe = ends[1];
  return w;
}

static double seconds_of(struct timeval t) {
  return (double)t.tv_sec + 1e-6 * (double)t.tv_usec;
}

/* Waits for the child. *used: its processor seconds, including children that it waited for. */
static int reap(pid_t child, double *used) {
  struct rusage usage = {0};
  int status = 0;
  while (wait4(child, &status, 0, &usage) < 0 && errno == EINTR) {
  }
  double seconds = seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
  of_children += seconds;
  if (used) *used = seconds;
  return status;
}

/* Removes the file in shared memory by which libomp announces itself to other copies. It is made
 * when libomp is loaded or its process forks; a child that is killed leaves it. */
static void forget_openmp(pid_t child) {
  char path[96];
  snprintf(path, sizeof path, "/dev/shm/__KMP_REGISTERED_LIB_%ld_%ld", (long)child, (long)getuid());
  unlink(path);
}

static void end_watch(const struct watcher *w) {
  if (w->process > 0) {
    kill(w->process, SIGKILL);
    reap(w->process, NULL);
  }
  if (w->pipe >= 0) close(w->pipe);
}

/* ---- in the parent --------------------------------------------------------------------------- */

static _Thread_local struct stop {
  bool (*requested)(void *data);
  void *data;
  pid_t process; /* process that calls `requested`; forks do not */
  double next;   /* clock_wall time of the next call */
  bool result;
} stop;

void child_stop_when(bool (*requested)(void *data), void *data) {
  stop = (struct stop){.requested = requested, .data = data, .process = getpid()};
}

struct child_stop child_stop_current(void) {
  return (struct child_stop){stop.requested, stop.data};
}

bool child_stopped(void) {
  double now = stop.requested ? clock_wall() : 0;
  if (!stop.requested || now < stop.next) return stop.result;
  if (stop.process != getpid()) return false;
  stop.next = now + 0.005;
  struct mem_call *call = mem_outside(); /* `requested` is a function of the user */
  stop.result = stop.requested(stop.data);
  mem_inside(call);
  return stop.result;
}

/* Keeps the last CHILD_OUTPUT - 1 bytes of output, made printable. */
static void keep_output(struct child_end *end, const char *bytes, size_t length) {
  size_t most = CHILD_OUTPUT - 1, had = strlen(end->output);
  if (length > most) {
    bytes += length - most;
    length = most;
  }
  size_t drop = had + length > most ? had + length - most : 0;
  memmove(end->output, end->output + drop, had - drop);
  char *p = end->output + (had - drop);
  for (size_t i = 0; i < length; i++) {
    unsigned char c = (unsigned char)bytes[i];
    *p++ = (c >= 0x20 && c < 0x7f) || c == '\n' ? (char)c : '?';
  }
  *p = '\0';
}

/* Reads available output, waiting up to `seconds`; false: all writers are gone. */
static bool read_output(int file, double seconds, struct child_end *end) {
  char bytes[4096];
  struct pollfd wait = {.fd = file, .events = POLLIN};
  int ready = poll(&wait, 1, (int)ceil(1000 * fmax(0, seconds)));
  if (ready <= 0) return ready == 0 || errno == EINTR;
  ssize_t length = read(file, bytes, sizeof bytes);
  if (length > 0) keep_output(end, bytes, (size_t)length);
  return length > 0 || (length < 0 && (errno == EINTR || errno == EAGAIN));
}

/* Whether the child has ended. It stays a zombie, so that the group keeps its id. */
static bool has_ended(pid_t child) {
  siginfo_t info = {0};
  int result = waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT);
  return result ? errno != EINTR : info.si_pid == child;
}

static void doze(double seconds) {
  struct timespec time = {0, (long)(1e9 * fmin(0.9, seconds))};
  nanosleep(&time, NULL);
}

/* Ticks of a process of that group and of the children that it has waited for, from what stands
 * behind its name in /proc/PID/stat; 0: it is of another group. */
static double ticks_in_group(const char *fields, pid_t group) {
  enum { PARENT = 4, GROUP = 5, USER = 14, CHILDREN_KERNEL = 17 }; /* numbered as in proc(5) */
  const char *at = fields + strspn(fields, " ");
  double ticks = 0;
  if (*at) at++; /* the state, a letter */
  for (int i = PARENT; i <= CHILDREN_KERNEL; i++) {
    char *end;
    long long value = strtoll(at, &end, 10);
    if (end == at || (i == GROUP && value != group)) return 0;
    if (i >= USER) ticks += (double)value;
    at = end;
  }
  return ticks;
}

/* Processor seconds of a process group and of children that it waited for; 0: unknown. */
static double processor_of_group(pid_t group) {
  DIR *folder = opendir("/proc");
  double ticks = 0;
  for (struct dirent *e; folder && (e = readdir(folder));) {
    char path[64], text[512], *end;
    if (*e->d_name < '1' || *e->d_name > '9') continue;
    snprintf(path, sizeof path, "/proc/%.20s/stat", e->d_name);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = file < 0 ? -1 : read(file, text, sizeof text - 1);
    if (file >= 0) close(file);
    text[length > 0 ? length : 0] = '\0';
    end = strrchr(text, ')'); /* end of the name, which may contain anything */
    if (end) ticks += ticks_in_group(end + 1, group);
  }
  if (folder) closedir(folder);
  return ticks / (double)sysconf(_SC_CLK_TCK);
}

static double processor_of_process(pid_t process) {
  struct timespec used;
  clockid_t clock;
  if (clock_getcpuclockid(process, &clock) || clock_gettime(clock, &used)) return 0;
  return (double)used.tv_sec + 1e-9 * (double)used.tv_nsec;
}

/* The step in which a child is. */
struct step {
  double began, used;      /* start by clock_wall; the child's processor seconds before it */
  double next;             /* clock_wall time of the next look at the group */
  int seen, steps;         /* last value of the counter; number of changes */
  bool late, processor;    /* over `limit`; the limit is of processor time, else of the clock */
  double limit, beginning; /* limit in seconds; start of the child by clock_wall */
};

static double processor_limit(const struct child_limits *l) {
  return l->seconds * (l->threads > 1 ? l->threads : 1);
}

static void next_step(const struct child_limits *l, pid_t child, struct step *s, double now) {
  if (!l->step || *l->step == s->seen || s->steps >= l->steps) return;
  s->seen = *l->step;
  s->steps++;
  s->began = now;
  s->used = processor_of_process(child);
}

/* Processor seconds of the step. The group of a program is read only once it may exceed its
 * seconds. */
static double processor_used(const struct task *t, pid_t child, struct step *s, double now) {
  if (t->work) return processor_of_process(child) - s->used;
  if (now < s->next || now - s->began < t->limits->seconds) return 0;
  s->next = now + 0.1;
  return processor_of_group(t->group ? t->group : child);
}

/* Seconds until the next wall-clock limit; sets `late`. */
static double time_left(const struct task *t, pid_t child, struct step *s) {
  const struct child_limits *l = t->limits;
  double now = clock_wall(), wall = l->wall > 0 ? l->wall : CHILD_WALL * l->seconds;
  next_step(l, child, s, now);
  double end = s->began + wall;
  if (l->until && l->until < end) end = l->until;
  s->processor = processor_used(t, child, s, now) > processor_limit(l);
  s->late = s->processor || now >= end;
  s->limit = s->processor ? processor_limit(l) : end == l->until ? end - s->beginning : wall;
  return end - now;
}

/* Waits until the child has ended (true) or is out of time (false). While the pipe is open, its end
 * wakes us; afterwards the child is polled, ever more slowly. */
static bool wait_child(const struct task *t, pid_t child, struct step *s, struct child_end *end) {
  bool open = true;
  double pause = 1e-5;
  for (;;) {
    if (has_ended(child)) return true;
    double left = time_left(t, child, s);
    if (s->late || child_stopped()) return false;
    if (open) {
      open = read_output(t->pipe[0], fmin(left, 0.02), end);
    } else {
      doze(fmin(left, pause));
      pause = fmin(2 * pause, 0.01);
    }
  }
}

/* Whether the system's processor limit ended the child or something that it started. */
static bool is_over_limit(const struct task *t, int status, double used) {
  if (WIFSIGNALED(status)) return WTERMSIG(status) == SIGXCPU;
  return t->words && WEXITSTATUS(status) && used > processor_limit(t->limits);
}

static void judge_end(int status, bool in_time, const struct note *note, struct child_end *end) {
  if (WIFEXITED(status)) {
    end->how = CHILD_EXITED;
    end->code = WEXITSTATUS(status);
    return;
  }
  end->code = WTERMSIG(status);
  end->how = CHILD_CRASHED;
  if (!in_time) {
    end->how = CHILD_OUT_OF_TIME;
  } else if (note->signal && note->memory) {
    end->how = CHILD_OUT_OF_MEMORY;
  } else if (note->signal == end->code) {
    end->known = note->known;
    end->stack = note->stack;
    end->address = note->address;
  }
}

static void follow(const struct task *t, pid_t child, struct child_end *end) {
  double start = clock_wall(), used;
  struct step step = {
      .began = start, .beginning = start, .seen = t->limits->step ? *t->limits->step : 0};
  bool in_time = wait_child(t, child, &step, end);
  kill(t->group ? -t->group : -child, SIGKILL);
  kill(child, SIGKILL);
  int status = reap(child, &used);
  end->seconds = clock_wall() - start;
  forget_openmp(child);
  while (read_output(t->pipe[0], 0, end) && clock_wall() < start + end->seconds + 0.1) {
    struct pollfd more = {.fd = t->pipe[0], .events = POLLIN};
    if (poll(&more, 1, 0) <= 0) break;
  }
  judge_end(status, in_time, t->note, end);
  end->processor = step.processor;
  end->limit = step.limit;
  if (!in_time || !is_over_limit(t, status, used)) return;
  end->how = CHILD_OUT_OF_TIME;
  end->processor = true;
  end->limit = processor_limit(t->limits);
}

static canvas_status run_task(canvas_context *ctx, struct task *t, struct child_end *end) {
  memset(end, 0, sizeof *end);
  t->note = memory_shared(sizeof *t->note);
  if (!t->note) return fail(ctx, CANVAS_IO, "no memory to start a process: %s", strerror(errno));
  if (pipe(t->pipe)) {
    memory_unshare(t->note, sizeof *t->note);
    return fail(ctx, CANVAS_IO, "cannot start a process: %s", strerror(errno));
  }
  const struct watcher none = {-1, -1}, w = t->words ? watch() : none;
  t->parent = getpid();
  t->group = w.process > 0 ? w.process : 0;
  pid_t child = start_task(t);
  int why = errno;
  if (child == 0) be_work(t);
  close(t->pipe[1]);
  if (child > 0) {
    setpgid(child, t->group); /* parent and child both call it; either may be first */
    follow(t, child, end);
  }
  end_watch(&w); /* keeps the group id reserved until now */
  close(t->pipe[0]);
  memory_unshare(t->note, sizeof *t->note);
  return child > 0 ? CANVAS_OK : fail(ctx, CANVAS_IO, "cannot start a process: %s", strerror(why));
}

canvas_status child_call(canvas_context *ctx, int (*work)(void *data), void *data,
                         const struct child_limits *limits, struct child_end *end) {
  return run_task(ctx, &(struct task){.work = work, .data = data, .limits = limits}, end);
}

canvas_status child_exec(canvas_context *ctx, char *const *words, const char *folder,
                         const struct child_limits *limits, struct child_end *end) {
  char **environment = program_environment(folder);
  struct task t = {.words = words, .environment = environment, .folder = folder, .limits = limits};
  canvas_status status = run_task(ctx, &t, end);
  mem_free((void *)environment);
  return status;
}

int child_beside(void (*work)(void *data), void *data) {
  pid_t parent = getpid(), child = fork();
  if (child) return (int)child;
  mem_in_child();
  die_with(parent);
  default_signals();
  own_files(-1, -1, NULL);
  work(data);
  _exit(0);
}

void child_join(int child) {
  if (child <= 0) return;
  if (stop.requested) {
    while (!has_ended(child) && !child_stopped()) doze(0.002);
    kill(child, SIGKILL);
  }
  reap(child, NULL);
  forget_openmp(child);
}

static const char *signal_words(int signal) {
  switch (signal) {
    case SIGSEGV: return "segmentation fault";
    case SIGBUS: return "bus error";
    case SIGILL: return "illegal instruction";
    case SIGFPE: return "arithmetic fault";
    case SIGABRT: return "abort";
    case SIGXFSZ: return "file too large";
    default: return "signal";
  }
}

void child_describe(const struct child_end *end, const struct child_limits *limits, char *text,
                    size_t size) {
  switch (end->how) {
    case CHILD_EXITED: snprintf(text, size, "ended with status %d", end->code); break;
    case CHILD_OUT_OF_TIME:
      text_format(text, size, "ran longer than %.3g s %s", end->limit,
                  end->processor ? "of processor time" : "by the clock");
      break;
    case CHILD_OUT_OF_MEMORY:
      snprintf(text, size, "took more memory than there is (the limit is %lld MiB)",
               (long long)limits->memory >> 20);
      break;
    case CHILD_CRASHED:
      if (end->stack)
        snprintf(text, size, "crashed: its stack overflowed");
      else if (end->code == SIGKILL) /* not sent by us, possibly by the out-of-memory killer */
        snprintf(text, size, "was ended by SIGKILL, perhaps for lack of memory");
      else if (end->known)
        snprintf(text, size, "crashed at address 0x%llx (%s)", (unsigned long long)end->address,
                 signal_words(end->code));
      else
        snprintf(text, size, "crashed (%s, %d)", signal_words(end->code), end->code);
  }
}
