/* A function of canvas.h as a call (base/memory_call.h).
 *
 * The macros stand in the place of the head of a function that may allocate: `API_STATUS(NAME, (PARAMETERS),
 * (ARGUMENTS)) { BODY }`. They define NAME, which runs BODY, a function of its own, inside a call. Without memory
 * the body ends where it is, and NAME returns CANVAS_IO, or `otherwise`. Parameters are the only variables that live
 * across setjmp, and nothing changes them.
 */
#ifndef CANVAS_API_API_CALL_H
#define CANVAS_API_API_CALL_H

#include "base/memory_call.h"
#include "base/status.h"

#define API_STATUS(name, parameters, arguments)                        \
  static canvas_status name##_body parameters;                         \
  canvas_status name parameters {                                      \
    struct mem_call api_call;                                          \
    if (!mem_enter(&api_call)) return name##_body arguments;           \
    if (setjmp(api_call.failed)) return api_no_memory(ctx, &api_call); \
    canvas_status api_status = name##_body arguments;                  \
    mem_leave(&api_call);                                              \
    return api_status;                                                 \
  }                                                                    \
  static API_BODY canvas_status name##_body parameters

#define API_VALUE(type, name, parameters, arguments, otherwise) \
  static type name##_body parameters;                           \
  type name parameters {                                        \
    struct mem_call api_call;                                   \
    if (!mem_enter(&api_call)) return name##_body arguments;    \
    if (setjmp(api_call.failed)) {                              \
      api_no_value();                                           \
      return otherwise;                                         \
    }                                                           \
    type api_value = name##_body arguments;                     \
    mem_leave(&api_call);                                       \
    return api_value;                                           \
  }                                                             \
  static API_BODY type name##_body parameters

#define API_VOID(name, parameters, arguments, otherwise) \
  static void name##_body parameters;                    \
  void name parameters {                                 \
    struct mem_call api_call;                            \
    if (!mem_enter(&api_call)) {                         \
      name##_body arguments;                             \
    } else if (setjmp(api_call.failed)) {                \
      api_no_value();                                    \
      otherwise;                                         \
    } else {                                             \
      name##_body arguments;                             \
      mem_leave(&api_call);                              \
    }                                                    \
  }                                                      \
  static API_BODY void name##_body parameters

#if defined(__GNUC__)
#define API_BODY __attribute__((noinline))
#else
#define API_BODY
#endif

/* Runs a subcommand of the command line, and returns its exit status: 2, with a message, where a function without
 * a status has no memory. What the subcommand itself allocated is lost then. cli/command.h declares it, too. */
int canvas_run_command(int (*run)(int count, char **words), int count, char **words);

/* CANVAS_IO, with its message. */
canvas_status api_no_memory(canvas_context *ctx, const struct mem_call *call);
/* Inside canvas_main, ends the command; else does nothing. */
void api_no_value(void);

#endif
