/* The state of a sampler, for the files that draw: sampler.c and learned_steps.c. */
#ifndef CANVAS_SAMPLE_STATE_H
#define CANVAS_SAMPLE_STATE_H

#include "base/memory.h"
#include "sample/bytes_bound.h"
#include "sample/prior.h"
#include "sample/steps.h"

struct distinct {
  VEC(struct sizes);
};

struct sampler {
  struct sample_options options;
  const struct sample_options *o; /* of the draw under way: `options`, or `unruled` */
  struct sample_options unruled;
  int64_t looked;        /* applications that learned steps of this draw looked at */
  int least;             /* primitives of the kernel of the try under way */
  uint64_t drawable;     /* that options and space leave */
  struct targets layers; /* what rules judge: those that differ in more than names */
  struct {
    VEC(int64_t);
  } times; /* how many layers are as each of them */
  uint64_t seed;
  struct distinct targets, strided; /* distinct sizes of kernels without S and with */
  struct {
    VEC(int64_t);
  } groups; /* what G may be */
  struct bytes_bound bytes;
  struct families families;
  struct kernel *scratch;
  struct dim_facts *facts;
  struct {
    VEC(struct candidate);
  } candidates;
  struct prior *prior; /* NULL: no draw needs it */
  struct {
    VEC(int);
  } begins; /* known kernels that a draw may begin as */
  struct {
    VEC(double);
  } shares; /* of the candidates of a learned step */
  struct {
    VEC(uint32_t);
  } weights;
};

static const uint64_t any_kind = UINT64_MAX;

/* -- applications.c -- */
extern const struct family *const often_families[OFTEN_TYPES];
/* The kinds of a space's rows. */
uint64_t sampler_kinds_of(enum kernel_space space);
/* The narrowest space that has this application. */
enum kernel_space sampler_space_of(const struct candidate *c);
/* Keeps the families that have a drawable kind; returns their number. */
int families_drop(const struct family **all, int count, uint64_t drawable);
/* The applications of a type, of the kinds `of`, join the candidates. */
void sampler_gather(struct sampler *s, const struct partial *g, const struct family *f,
                    struct remaining left, uint64_t of);
void sampler_gather_all(struct sampler *s, const struct partial *g, const struct family *f,
                        struct remaining left, uint64_t of);
/* Those that are a product of two tensors. */
uint64_t sampler_matmuls(void);

/* -- learned_steps.c -- */
void sampler_list_known(struct sampler *s);
/* One try of a learned draw, up to its last step. `begun`: it begins as a part of a known kernel. */
bool sampler_grow_learned(struct sampler *s, struct partial *g, bool begun, bool matmul,
                          struct random *r);

#endif
