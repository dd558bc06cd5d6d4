/* What test_workspace.py compiles beside a function with a workspace: calls it alone, on memory of its
 * own, and from several threads; says how often memory was asked for.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wide.h"

enum { THREADS = 4, CALLS = 40, ROWS = 64, COLUMNS = 512 };

static float x[ROWS * COLUMNS], expected[ROWS * COLUMNS];
static int asked;

void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);

void *__wrap_aligned_alloc(size_t alignment, size_t size) {
  __atomic_fetch_add(&asked, 1, __ATOMIC_RELAXED);
  return __real_aligned_alloc(alignment, size);
}

static void *call_often(void *wrong) {
  float *y = malloc(sizeof expected);
  for (int i = 0; i < CALLS; i++)
    if (wide(x, y) || memcmp(y, expected, sizeof expected)) *(int *)wrong = 1;
  free(y);
  return NULL;
}

static int call_from_threads(void) {
  pthread_t threads[THREADS];
  int wrong[THREADS] = {0}, any = 0;
  for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, call_often, &wrong[i]);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  for (int i = 0; i < THREADS; i++) any |= wrong[i];
  return any;
}

int main(void) {
  int wrong = 0;
  for (int i = 0; i < ROWS * COLUMNS; i++) x[i] = (float)(i * 7919 % 1001) / 100;
  void *workspace = malloc(wide_workspace_bytes + 64);
  void *aligned = (char *)workspace + (64 - (size_t)workspace % 64);
  memset(aligned, 0xFF, wide_workspace_bytes);
  if (wide_with_workspace(x, expected, aligned)) return 1;
  free(workspace);
  printf("with a workspace %d\n", asked);
  call_often(&wrong);
  printf("%d calls %d\n", CALLS, asked);
  wide_free_workspace();
  wide_free_workspace();
  call_often(&wrong);
  printf("given back %d\n", asked);
  wrong |= call_from_threads();
  printf("%s\n", wrong ? "wrong" : "right");
  return wrong;
}
