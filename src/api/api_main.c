/* Calls without memory, and the command line, which has no answer to a text that is missing. */
#include <stdio.h>

#include "api/api_call.h"

/* Where the command of this thread ends; NULL: none runs. */
static _Thread_local jmp_buf *command;

canvas_status api_no_memory(canvas_context *ctx, const struct mem_call *call) {
  return fail(ctx, CANVAS_IO, "out of memory: %zu bytes could not be had", call->wanted);
}

void api_no_value(void) {
  if (command) longjmp(*command, 1);
}

int canvas_run_command(int (*run)(int count, char **words), int count, char **words) {
  jmp_buf *const outer = command;
  jmp_buf end;
  command = &end;
  if (setjmp(end)) {
    command = outer;
    fputs("canvas: out of memory\n", stderr);
    return 2;
  }
  int answer = run(count, words);
  command = outer;
  return answer;
}
