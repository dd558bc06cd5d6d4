/* The default schedule: what stands in for a search, chosen by a closed formula in less than a
 * millisecond.
 *
 *     default_program.c  edits that pay even inside the timed region: chains of maps, and borders of windows,
 *                        become one expression, reductions along the lanes partial sums, an output that stands
 *                        across the lanes is computed beside its place and copied
 *     default_editor.c    conditions of borders are said in one way
 *     default_reciprocals.c  a division by what is the same for a row becomes a product
 *     default_moves.c    what a sum loads in a twisted way is laid out before it
 *     default_straight.c  ... of a map whose lanes follow each other piece by piece each piece is vectors
 *     default_borders.c  ... but no padded image where the products with its border are left out
 *     default_panels.c   operands are packed into panels
 *     default_plan.c     what becomes of each stage: where it stands, how it is kept
 *     default_facts.c    what a stage is: how each load moves along each axis, what conditions ask
 *     default_phases.c   ... and where terms come and go with a remainder
 *     default_tile.c     lanes and rows of a stage that reduces: every candidate
 *     default_loads.c    what each load is to all of them
 *     default_cycles.c   the formula: what one of them takes
 *     default_windows.c  ... what windows of an image add to that
 *     default_known.c    ... of a stage that was seen before
 *     default_sums.c     a long sum in parts, of which all tiles read what stays in the second cache
 *     default_order.c    the order of its loops
 *     default_wish.c     what a sketch wants of them instead
 *     default_rows.c     rows that several stages share: one loop around all of them
 *     default_buffers.c  what a tile of rows reads is computed before it, for these rows only
 *     default_along.c    sums whose lanes go along them, of rows that no whole vectors divide
 *     default_nest.c     the loops of it and of what is computed in its tile
 *     default_ahead.c    ... and rows of images that they ask for before they are read
 *     default_odd.c      programs of rows that no whole vectors divide: each through all stages
 *     default_winograd.c Winograd's convolution: block by block of its tiles through all stages
 *     schedule_default.c all stages, one after the other; and the naive schedule
 *     default_bind.c     edits and schedule
 *
 * The formula. A tile is `vectors` vectors along one axis times rows along one or two others, all in
 * registers while the reduction runs. One step of the reduction takes
 *
 *     max(points * operations / ports,  accesses / 2,  latency,  panel bytes / 24 + line bytes / 48)
 *     + line bytes / 800  +  what is gathered
 *
 * cycles (lines are those of numbers that stand still along the lanes, where a tile finds them in more than
 * the first cache holds, with fewer than 32 registers together with its panels, and then come with 18 bytes a cycle, not
 * 48; accesses of a long sum that so few registers share count 1.04 times; panels
 * that more tiles use come with 8 bytes a cycle where one is more than the second cache, with 6 from memory),
 * where an operand is loaded once for the tile's steps along the axes that it does not move along, as a vector
 * where it is contiguous along the lanes and as one number where it stands still; of a short window that is
 * unrolled, only what the row before has not loaded: of short sums, and of long ones of one vector whose rows'
 * window fits into the registers beside the sums. Operands that go from page to page (with fewer than 32 registers the
 * first tile of those that find them in the first cache then, one after the other), conditions of borders and lanes that
 * are not all there cost more. The tile's vectors, one row of operands and one more fit into
 * the registers, of fewer than 32 also the vectors of all blocks of lanes, or the numbers that go with them;
 * rows that other vectors go with are innermost, so that these are loaded once, where they fit,
 * too, or are fewer than the numbers that go with them. Rows that do not divide the blocks which they are in
 * have an address each, and load those of more than 8. Of an image whose lines under a window are more than
 * the first cache, what a tile loads for the first time comes from the second one, and takes 0.024 cycles a
 * byte; but where it is not in memory, tiles of products with windows of nine terms or more go through it in strips as
 * wide as one of them, or one block of lanes after the other through all of it, whichever the first cache keeps, image
 * by image. With fewer than 32 registers each line of a long sum that comes alone from beyond the second cache costs a
 * tile 8
 * cycles, 24 from memory, less where blocks of lanes after it find it in the first cache: where steps of the reduction
 * are lines of 1 KiB or more from each other, and rows of the tile, too. A stage takes
 *
 *     tiles * (reduction * step + stores)  +  elements of what is packed for it
 *     +  blocks of lanes * what the first tile of each waits for its panel, where all panels are more than L2
 *
 * where 8 bytes of such a panel come in a cycle, 6 from memory, fewer where less than four lines of each page are
 * read, and the tile with the least of it is taken; what is packed of constant inputs costs nothing, lanes that
 * overshoot pay by their number, rows that are left over are a smaller tile. A map takes the bytes that it
 * moves; what no whole vectors divide of it is code of its own. Outside the tile stand the loops over tiles:
 * the panel of weights of one block of lanes is used for all rows, unless it is larger than half of L2 and the
 * rows' operands are smaller. Panels of more than L2 are asked for some steps before, where few tiles of rows
 * use each of them. Where one tile alone does, as in the product of a matrix and a vector, and they are in
 * memory, two of them are read at once, or two of half the lanes where registers do not suffice; with fewer than 32
 * of these they come in time without being asked for.
 *
 * A sum of products, of one axis and without conditions, comes in parts, whose loop stands outside of all tiles of one
 * product, where most of what these read is read by several of them: in up to 1024 steps of which all that they read
 * is half of the second cache, if these are 256 or more, or 512 steps where a tile reads more than half of that cache
 * from one tensor. The sums go to memory and come back with each part, for 0.25 cycles a byte, what reads them stands
 * behind the last one.
 *
 * Of the reductions the one that moves furthest is outermost, but short ones stand outside of long ones, unless
 * these go to another page in each step. Windows that do not overlap are read in order: a tile has two of them.
 * What a tile of rows reads may be computed before it: where that looks at a window of more than half of the
 * first cache, rows lie along it.
 *
 * An output that has the lanes elsewhere costs 0.3 + 2.6 / rows cycles a lane where four or more rows, no more than a
 * vector has lanes or whole vectors of them, follow each other in it, which are lanes there (code_transpose.c), more where
 * parts of vectors are stored by halves, else 1.5 or, without such rows, 2; what is read lane by lane beside it 0.7, an
 * operation of a function that is called for each element 2.
 *
 * Stages that read each other row by row, as those of softmax, share the loop over rows where what a row
 * touches fits into two first caches and all rows do not: that saves 0.03 cycles of each byte that comes
 * or goes once less, and costs 20 cycles of each sum over lanes and row, which other rows do not hide.
 */
#ifndef CANVAS_AUTOSCHEDULE_DEFAULT_H
#define CANVAS_AUTOSCHEDULE_DEFAULT_H

#include "bind/loop_tree.h"

enum {
  DEFAULT_LOADS = 12,
  DEFAULT_REGISTERS = 32 /* of vectors; with fewer a tile shares less of what it loads */
};

/* How a load moves: one for each load node of a stage's expression. */
struct default_load {
  int node, tensor;
  int64_t stride[PROGRAM_AXES]; /* elements for one step of the axis, within a block */
  int64_t block[PROGRAM_AXES];  /* steps for which the stride holds; 0: all */
  int64_t jump[PROGRAM_AXES];   /* ... to the next block where it is 0 within; 0: not known */
  uint32_t twisted;             /* axes along which no stride says where it goes */
  uint32_t moves;               /* axes that it depends on */
  uint32_t asked;               /* axes in conditions around it */
  bool plain;           /* of an input, each index is an axis or a digit of one: it may be packed */
  int of[PROGRAM_AXES]; /* of a plain one, by index: the axis, the inner one of two, -1: none */
  bool moved[PROGRAM_AXES]; /* ... each step of the axis moves it */
  uint32_t inner, outer;    /* ... axes that are the inner and the outer one of two */
  bool rare;                /* in few terms of a sum: of no account */
};

struct default_facts {
  const struct program *p;
  int stage;
  const struct program_tensor *t;
  const int *order; /* in which its axes are kept */
  int loads;
  bool many;       /* more loads than there is room for: the last ones are not told */
  uint32_t asked;  /* axes in conditions of indices */
  uint32_t rough;  /* ... that are no borders: loops cannot be split where they change */
  uint32_t bounds; /* own axes that say how far a reduction runs */
  int operations;  /* of one point, a multiply-add is one */
  int64_t period[PROGRAM_AXES]; /* the remainder of an own axis and a reduction says which terms
                                   there are, every so many; 0: it does not */
  int64_t points, reduction;
  bool phased;                 /* some axis has such a period */
  double inside[PROGRAM_AXES]; /* by own axis: what a border leaves of a long sum's terms */
  bool bordered;               /* ... of one of them not all */
  int64_t out[PROGRAM_AXES];   /* strides of what it writes */
  struct default_load load[DEFAULT_LOADS];
};

/* How a stage is kept: its axes, slowest first, and the steps that are kept of each. */
struct default_kept {
  int order[PROGRAM_AXES];
  int64_t extent[PROGRAM_AXES]; /* by axis */
};

/* `kept` by tensor. */
void default_facts(const struct program *p, int stage, const struct default_kept *kept,
                   struct default_facts *out);
void default_keep_plain(const struct program_tensor *t, struct default_kept *out);
int default_lanes(const struct program_tensor *t, const struct machine *machine); /* of a vector */
/* Data move along the axis, all of them by one or not at all, and under no condition of it. */
bool default_is_straight(const struct default_facts *f, int axis);
/* What moves along the axis is contiguous along an own one, too, as a window of a line is. */
bool default_has_other_lanes(const struct default_facts *f, int axis);
/* Several rows may use what one of them loads, as those of a product do. */
bool default_rows_share(const struct default_facts *f);
/* Every load moves along the own axis, as those of many products do along the axis that counts these. */
bool default_moves_all(const struct default_facts *f, int axis);
void default_strides(const struct program_tensor *t, const struct default_kept *kept,
                     int64_t *stride);
/* default_inside.c: how many numbers a reduction adds; the share of places for which a condition holds, as far
 * as that is known: at least. Sets `inside`; the expression beyond the border, -1 where there is none. */
double default_terms(const struct program_tensor *t);
double default_share(const struct default_facts *f, int condition);
int default_find_inside(struct default_facts *f);
/* default_phases.c: periods; a condition that they are about; an index under it, added to the load. */
void default_find_phases(struct default_facts *f);
bool default_is_phase(const struct default_facts *f, int condition);
bool default_phase_index(const struct default_facts *f, int expr, int64_t stride,
                         struct default_load *l);
/* Steps of a reduction with a period that are unrolled. */
int64_t default_phase_steps(const struct default_facts *f, int axis);

/* Whether what the stage writes is one long axis, from its axis order[first] on, and each load moves along
 * it or stands still. */
bool default_long_axis(const struct default_facts *f, int first);

/* Which loops come in blocks that stay in L2, around all others. */
enum default_blocks {
  BLOCKS_FORMULA, /* as the formula has it */
  BLOCKS_LANES,   /* panels of lanes, `together` of them while the rows run */
  BLOCKS_ROWS,    /* tiles of rows, while the panels run */
  BLOCKS_BANDS    /* some rows of an image with all its columns, while the panels run */
};

/* What a sketch wants of the stage with the longest sums, where the formula would choose. By names, because edits
 * number axes anew. What cannot be is left to the formula: who wishes looks at what was made. */
struct default_wish {
  bool tile;                  /* lanes, steps and rows are wished for */
  char lanes[PROGRAM_NAME];   /* own axis; "": none */
  int64_t steps;              /* of its inner loop */
  char rows[2][PROGRAM_NAME]; /* own axes of more than one row; "": none */
  enum default_blocks blocks;
  bool borders; /* conditions stay: nothing is laid out, and sums are of what is inside */
  char buffer[PROGRAM_NAME];   /* a stage that it reads is computed for a block of rows; "": none */
  int64_t sums;                /* partial sums: 0 as the formula has it, -1 none */
  struct default_wishes *seen; /* the best of each kind of tile is added here; or NULL */
};
struct default_wished {
  struct default_wish wish;
  double cycles; /* of the stage */
};
struct default_wishes {
  VEC(struct default_wished);
};

struct default_tile {
  int vec;          /* own axis; -1: none */
  int64_t steps;    /* of its inner loop: the lanes, or some vectors of them */
  int64_t together; /* so many of them stay in L2 while the rows run; 1 */
  int blocked;      /* the axis whose tiles come in blocks of so many; -1: together is 1 */
  bool bands;       /* a block is outside the lanes, its tiles inside, around those of later axes */
  bool streams;     /* a block's panels are read at once: it is unrolled within the reduction */
  bool open;        /* numbers are: axes are split although there is one step outside */
  bool masked;      /* they overshoot ... */
  bool peeled;      /* ... in code of their own */
  int64_t rows[PROGRAM_AXES]; /* unrolled steps of each own axis; 1 */
  int order[PROGRAM_AXES];    /* own axes, the outermost loop first; then reductions */
  uint32_t packed;            /* loads that are to be packed */
  uint32_t rolled;            /* own axes whose rows are a loop */
  uint32_t unrolled;          /* reductions that are */
  bool kept;     /* rows with other vectors are innermost, each of these is loaded once */
  bool phases;   /* loops are split by the periods */
  int slide;     /* the reduction along which next rows use what these load; -1 */
  int64_t part;  /* steps of a part of the sum, all parts outside the tiles; 0: none */
  double cycles; /* what the formula says */
};

struct default_options {
  bool pack;                       /* operands may be packed: otherwise they are as they are */
  bool inner;                      /* how it is kept is open: its lanes may be contiguous */
  int lanes;                       /* all of this axis are lanes; -1: what is best */
  const struct default_wish *wish; /* or NULL */
  uint32_t turned;  /* axes along which what is computed in the tile loads in a twisted way */
  uint32_t outside; /* axes whose loops stand around other stages, too: neither lanes nor rows */
  bool parts;       /* long sums may go to memory and come back ... */
  bool stored; /* ... and are kept with their lanes last then, whatever is written in the end */
  bool split;  /* maps may have lanes along an axis with conditions: not under a sketch's wish */
};

double default_long_cycles(const struct default_facts *f); /* of one long vector */
/* default_sums.c: a long sum that may be computed in parts. */
bool default_has_parts(const struct default_facts *f);
/* default_known.c */
void default_choose_tile(const struct default_facts *f, const struct machine *machine,
                         struct default_options options, struct default_tile *out);
void default_forget(void); /* all tiles that were chosen before: for tests and timings */

/* ---- default_plan.c: what becomes of a stage ---- */

/* Rows of vectors, and lanes of these, from which on a tile is transposed. */
enum { DEFAULT_ACROSS = 4, DEFAULT_WIDE = 8 };

/* ... of part of a vector, or of whole ones. */
static inline bool default_goes_across(int64_t rows, int lanes) {
  return rows >= DEFAULT_ACROSS && (rows <= lanes || rows % lanes == 0);
}

enum default_kind {
  DEFAULT_UNUSED,   /* an input, or no output needs it */
  DEFAULT_LONG,     /* no reduction, and its axes from `first` on are one vector */
  DEFAULT_ALONG,    /* a reduction whose lanes go along its axis `first` */
  DEFAULT_TILED,    /* a tile */
  DEFAULT_WITHIN,   /* computed in the tile of a stage that it reads */
  DEFAULT_DEFERRED, /* a reduction whose tile stands where `reader` does */
  DEFAULT_BUFFERED  /* computed before each tile of `reader`, for its rows only */
};
struct default_plan {
  enum default_kind kind;
  int first;
  struct default_tile tile;
  int reader;             /* DEFERRED: what is computed in its tile, BUFFERED: what reads it ... */
  bool apart;             /* ... with other lanes: element by element, or ... */
  int across;             /* ... in vectors along this axis of the tile, which is transposed; -1 */
  int axis[PROGRAM_AXES]; /* of the stage, for axis i of the reader, reductions too; -1 */
};

/* What is open. Both of `told` are tried for a program, and what takes less is taken. */
struct default_mode {
  bool pack; /* operands may be packed */
  bool told; /* each stage is kept as the program tells, so that lanes run along its last axis */
  const struct default_wish *wish; /* or NULL */
  bool *matters; /* or NULL; set where `told` makes a difference: else one of both is tried */
};

enum { DEFAULT_ROWS = 4 }; /* loops that stages share */

/* The loops at the root that a stage shares with others, the outermost first. */
struct default_shared {
  int group; /* 0: none */
  int count;
  int axis[DEFAULT_ROWS]; /* its own */
  bool seen;              /* by a stage outside the group, or it is an output */
};

/* The reduction along which lanes go, summed up in each step, as no whole vectors divide it; -1: there is none, or
 * something else is better. */
int default_along(const struct default_facts *f, const struct machine *machine);
int64_t default_along_steps(const struct default_facts *f, const struct machine *machine);
double default_along_cycles(const struct default_facts *f, const struct machine *machine, int axis);

/* So many bytes are in memory: no cache holds them. */
bool default_is_far(const struct machine *machine, double bytes);

/* The own axis whose loop asks for what it reads so many steps later; -1. */
struct default_ahead {
  int axis, steps;
};

struct default_ahead default_rows_ahead(const struct default_facts *f,
                                        const struct machine *machine,
                                        const struct default_tile *tile);

/* All stages: kept, plan and shared by tensor. */
struct default_plans {
  const struct program *p;
  int wished; /* the stage that a wish is about; -1 */
  const struct machine *machine;
  struct default_mode mode;
  struct default_kept *kept;
  struct default_plan *plan;
  struct default_shared *shared;
  bool *constant; /* by tensor: what weights alone make, which is prepared */
  double saved;   /* cycles, by groups */
};
void default_plan_all(struct default_plans *plans, const struct program *p,
                      const struct machine *machine, struct default_mode mode);
/* Of all stages, by the formula, but for those that are prepared. */
double default_plan_cycles(const struct default_plans *plans);
void default_plan_free(struct default_plans *plans);
/* The same with these groups; `saved` is 0. */
void default_plan_shared(struct default_plans *out, const struct default_plans *plans,
                         const struct default_shared *shared);
/* default_rows.c: with the groups that pay. */
void default_share_rows(struct default_plans *plans);
/* default_buffers.c: with the stages that are computed before each tile of what reads them. */
void default_buffer_stages(struct default_plans *plans);
/* The reader's axis for axis i of the stage; -1. */
int default_reader_axis(const struct default_plan *plan, int i);
/* Each load of `tensor` in a reader's expression is of one element for each of the reader's, axis[i] being what
 * stands for the reader's axis i; how many there are, -1 if one is otherwise. */
int default_loads_as_is(const struct program *p, int expr, int tensor, int *axis);
/* The only stage that reads this one; -1. */
int default_only_reader(const struct default_plans *plans, int stage);

/* ---- default_nest.c: the loops of a stage, at the end of the schedule that is made ---- */

/* What a level stands for: stages share one where it means the same to both. */
struct default_meaning {
  int64_t size;
  const char *dyn;      /* the axis that says how far it runs; NULL: a number does */
  enum level_tail tail; /* of its axis */
  int open;             /* 1 + the stage whose alone it is, as its number will be another; 0 */
  bool shared;          /* a loop over rows that stages share */
};

struct default_maker {
  const struct program *p;
  struct schedule *s;
  const struct machine *machine;   /* NULL: naive */
  const struct default_kept *kept; /* by tensor */
  struct {
    VEC(struct default_meaning);
  } meanings;                          /* by level */
  const struct default_shared *shared; /* by tensor; NULL: no stage shares loops */
  const struct default_plan *plan;     /* by tensor; NULL: no stage is buffered */
  int around;                          /* the loops that stages share now: the innermost, 0: none */
  int rows[DEFAULT_ROWS];              /* their levels */
};

int default_level(struct default_maker *m, const char *stage, const char *name,
                  struct default_meaning meaning);
int default_axis_level(struct default_maker *m, const struct program_tensor *t, int axis);

/* Opens the loops that the stages of this one's group share. */
void default_open_rows(struct default_maker *m, int stage);

/* The stage in its tile, and there what plan->reader makes of it. */
void default_tiled(struct default_maker *m, const struct default_facts *f,
                   const struct default_plan *plan);
/* A reduction element by element, in lanes along its axis plan->first. */
void default_reduced_along(struct default_maker *m, const struct default_facts *f,
                           const struct default_plan *plan);
/* A stage without a reduction as one long vector along its axes from plan->first on. */
void default_long(struct default_maker *m, const struct default_facts *f,
                  const struct default_plan *plan);

/* default_odd.c: of a program of such rows, but for partial sums; NULL: it is none. */
struct schedule *default_odd_rows(const struct program *p, const struct machine *machine);
/* Edits of its maps may make it one. */
bool default_may_have_odd_rows(const struct program *p, const struct machine *machine);

/* How a program keeps its stages, which is what its edits were chosen for: `told` of a mode. */
enum default_keeps { KEPT_EITHER /* in the mode that takes less */, KEPT_FREELY, KEPT_AS_TOLD };
struct default_edited {
  struct program *program; /* NULL: there are no edits */
  enum default_keeps kept;
};

/* schedule_default.c: of all stages of a program after its edits, by the formula. */
double default_cycles(const struct program *p, const struct machine *machine,
                      enum default_keeps kept);

/* The program with merged axes (program_merge_axes), where it takes less then by the formula; NULL: it does not. */
struct program *default_merged(const struct program *p, const struct machine *machine);

/* The program after the edits, merged axes among them; NULL where it stays as it is. */
struct default_edited default_edit(const struct program *p, const struct machine *machine);
struct program *default_program(const struct program *p, const struct machine *machine);

/* schedule_default.c: schedule and tree of a program after edits that were chosen for it to be kept so. */
canvas_status default_bind_kept(canvas_context *ctx, const struct program *p,
                                const struct machine *machine, enum default_keeps kept,
                                struct schedule **schedule, struct loop_tree **tree);

/* default_bind.c: the default of a program: edits, schedule and tree; `edited` NULL where it stays as it is, which is
 * also tried where the other fails. */
struct default_bound {
  struct program *edited;
  struct schedule *schedule;
  struct loop_tree *tree; /* of `edited`, or of the given program */
};
canvas_status default_bind(canvas_context *ctx, const struct program *p,
                           const struct machine *machine, struct default_bound *out);

/* ---- default_wish.c ---- */

/* The stage that a wish is about: the most operations in its sums, or of all where nothing is summed. */
int default_wished_stage(const struct program *p, const bool *needed);
/* Whether the tile is what was wished for. */
bool default_is_wished(const struct default_facts *f, const struct default_tile *tile,
                       const struct default_wish *wish);

/* Every kind of tile of that stage, the best first; edits up to panels are made as the wish says. */
void default_wishes_of(const struct program *p, const struct machine *machine,
                       const struct default_wish *wish, struct default_wishes *out);

/* A program after the edits under a wish, and a schedule of it: what takes least. */
struct default_made {
  struct program *program;
  struct schedule *schedule;
  int stage;                /* of the program: what the wish is about */
  struct default_tile tile; /* its own */
  double cycles;            /* of all stages */
};
/* False: the wish is not granted, or the schedule is illegal. */
bool default_make(const struct program *p, const struct machine *machine,
                  const struct default_wish *wish, struct default_made *out);
/* schedule_default.c: of a program after its edits; NULL in that case. Sets stage and tile. */
struct schedule *schedule_wished(const struct program *p, const struct machine *machine,
                                 const struct default_wish *wish, struct default_made *out);

#endif
