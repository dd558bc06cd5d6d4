"""A study: all that a search or a fit did, in one SQLite file that any SQLite tool can open.

    study       one row: the question as asked, checksum of the images, layers to replace
    session     one row per run of the driver: versions, machine, all options of that run
    draw        one row per index of the sampler: trial, skipped, duplicate or unsolved
    network     one row per network (baseline, controls, finds): texts, results
    item        what the strategy asked for, in order: a new find, or the next rung of one
    rung        what each rung of a candidate gave
    epoch       the accuracy curve of each candidate
    timing      latency per candidate and engine (eager, compiled, native, those of a GPU)
    final       a finalist trained once more from another seed, scored on the test split
    audit       a rejected find trained to the end after all, to see what was lost
    screened    fits: one row per kernel that was fitted to one layer
    fit         fits: one row per operator at a layer and a size
    choice      fits: the operator that each layer of a network has
    task        what is to be done: what a worker must offer, its state, why it failed
    candidate   a view: a network with the state of its training

A task is the only state of a piece of work.

The driver is the only writer; readers may look at any time (WAL).  What is recorded is the truth:
tasks that a killed driver left `running` are `queued` again when the next one opens the study, and
what is asked next is a pure function of the items and what came of them, so the same command goes
on where the last one ended.
A lock beside the file keeps a second driver out.

Only text and numbers are stored: code is always made again from a pack that the core has parsed
and checked.  A study of an older format is brought up to date when a search opens it.
"""

from __future__ import annotations

APPLICATION = 0x436E7653  # "CnvS", so that `file` and we recognise a study
VERSION = 10

REQUIRES = {
    "accuracy": '{"cores": 1}',
    "second": '{"cores": 1}',
    "latency": '{"cores": 1, "exclusive": true}',
    "final": '{"cores": 1}',
}

NETWORK = """
CREATE TABLE network (
  id         INTEGER PRIMARY KEY,       -- in the order of training
  name       TEXT NOT NULL UNIQUE,      -- baseline, the control's name, or the index of the draw
  kind       TEXT NOT NULL CHECK (kind IN ('baseline', 'control', 'find')),
  number     INTEGER UNIQUE,            -- finds: 0, 1, 2, ... without the draws that gave none
  budget     TEXT NOT NULL DEFAULT '',  -- what it was solved for; '' where no budget counts
  kernel     TEXT NOT NULL DEFAULT '',  -- kernel text; '' for the baseline
  pack       TEXT NOT NULL DEFAULT '',  -- kernel text with one line of sizes per target
  hash       TEXT,                      -- of the kernel, equal for isomorphic ones
  origin     TEXT NOT NULL DEFAULT '',  -- finds: draw, mutation, crossover or transfer
  parents    TEXT NOT NULL DEFAULT '',  -- names of what it was made from, a blank between two
  layer_macs INTEGER,                   -- of the layers replaced: what the budget counts
  spread     REAL,                      -- of gradient norms over the replaced layers, untrained
  naswot     REAL,                      -- untrained
  fingerprint TEXT,                     -- of the untrained network's function
  error      REAL,                      -- at a layer of the trained unchanged network, 0..1
  macs       INTEGER,                   -- of the whole network, one image
  params     INTEGER,                   -- of the whole network
  val_accuracy REAL,                    -- the task's metric after the last epoch trained, the mean
                                        -- over its seeds; an accuracy is 0..1
  latency_ms REAL,                      -- one forward of the whole network, its fastest engine
  latency_spread_ms REAL,               -- interquartile range
  speedup    REAL,                      -- against the fastest engine of the unchanged network
  speedup_spread REAL,                  -- interquartile range of the rounds' ratios
  engine     TEXT NOT NULL DEFAULT '',  -- of these figures, as in timing
  seconds    REAL,                      -- of training
  session    INTEGER,                   -- the run of the driver that trained it
  memory_format TEXT NOT NULL DEFAULT '',  -- of its trainings; '' before the first
  role       TEXT NOT NULL DEFAULT '',  -- in a fit: teacher, tuned, mix, controls or single
  divergence REAL,                      -- in a fit: from the teacher before tuning
  tuned_divergence REAL,                -- in a fit: from the teacher after tuning
  weights    TEXT NOT NULL DEFAULT '',  -- sha256 of the trained ones, in DIR/weights
  UNIQUE (hash, budget)
) STRICT;
"""

SESSION = """
CREATE TABLE session (
  id       INTEGER PRIMARY KEY,
  options  TEXT NOT NULL,               -- JSON, every option with its value
  versions TEXT NOT NULL,               -- JSON: canvas, torch, python, sqlite, sampler
  machine  TEXT NOT NULL,               -- JSON: processor, cores, system
  begun    REAL NOT NULL,               -- seconds since 1970
  seconds  REAL                         -- until its end, or what was recorded last before a kill
) STRICT;
"""

# Rung 1 is a part of the epochs, rung 2 all of them, rung 3 all of them from a second seed.
ITEM = """
CREATE TABLE item (
  number    INTEGER PRIMARY KEY,        -- 0, 1, 2, ... in the order asked
  candidate INTEGER NOT NULL REFERENCES network (id),
  rung      INTEGER NOT NULL,           -- that it is trained to
  UNIQUE (candidate, rung)
) STRICT;
"""

RUNG = """
CREATE TABLE rung (
  candidate INTEGER NOT NULL REFERENCES network (id),
  number    INTEGER NOT NULL CHECK (number IN (1, 2, 3)),
  seed      INTEGER NOT NULL,
  epochs    INTEGER NOT NULL,           -- behind it when it was scored
  accuracy  REAL NOT NULL,              -- the metric on validation; 0 for a task without one
  seconds   REAL,                       -- of training from that seed
  session   INTEGER,
  PRIMARY KEY (candidate, number)
) STRICT;
"""

FINAL = """
CREATE TABLE final (
  candidate INTEGER NOT NULL REFERENCES network (id),
  seed      INTEGER NOT NULL,
  epochs    INTEGER NOT NULL,
  val_accuracy  REAL NOT NULL,          -- the task's metric
  test_accuracy REAL NOT NULL,
  hits      BLOB NOT NULL,              -- a bit per test image, the first in the highest bit;
                                        -- empty where the metric is no share of images
  seconds   REAL,
  session   INTEGER,
  PRIMARY KEY (candidate, seed, epochs)
) STRICT;
"""

AUDIT = """
CREATE TABLE audit (
  candidate INTEGER NOT NULL REFERENCES network (id),
  epochs    INTEGER NOT NULL,
  accuracy  REAL,                       -- on validation after the last epoch, 0..1
  seconds   REAL,
  reason    TEXT NOT NULL DEFAULT '',   -- why there is no accuracy
  PRIMARY KEY (candidate, epochs)
) STRICT;
"""

TIMING = """
CREATE TABLE timing (
  candidate  INTEGER NOT NULL REFERENCES network (id),
  engine     TEXT NOT NULL CHECK (
    engine IN ('eager', 'compiled', 'native', 'gpu', 'gpu-compiled', 'gpu-graph')
  ),
  latency_ms REAL,                      -- one forward of the whole network, median
  spread_ms  REAL,                      -- interquartile range
  speedup    REAL,                      -- median over rounds of unchanged / this
  speedup_spread REAL,                  -- interquartile range of these ratios
  against    TEXT NOT NULL DEFAULT '',  -- the unchanged network's fastest engine
  batch      INTEGER NOT NULL,
  reason     TEXT NOT NULL DEFAULT '',  -- why there are no figures
  session    INTEGER,
  seconds    REAL,                      -- of compiling and timing it, by the clock
  processor  REAL,                      -- ... of processors
  PRIMARY KEY (candidate, engine)
) STRICT;
"""

TASK = """
CREATE TABLE task (
  id        INTEGER PRIMARY KEY,
  candidate INTEGER NOT NULL REFERENCES network (id),
  kind      TEXT NOT NULL CHECK (kind IN ('accuracy', 'second', 'latency', 'final')),
  seed      INTEGER NOT NULL DEFAULT 0, -- of a final
  epochs    INTEGER NOT NULL DEFAULT 0, -- of a final
  requires  TEXT NOT NULL,              -- JSON: what a worker must offer
  state     TEXT NOT NULL CHECK (state IN ('queued', 'running', 'waiting', 'done', 'pruned',
                                           'rejected', 'failed')),
  attempt   INTEGER NOT NULL DEFAULT 0,
  reason    TEXT NOT NULL DEFAULT '',   -- why failed, rejected or pruned: kind and message
  log       TEXT NOT NULL DEFAULT '',   -- last lines of output of a failed one
  UNIQUE (candidate, kind, seed, epochs)
) STRICT;
"""

SCREENED = """
CREATE TABLE screened (
  number  INTEGER PRIMARY KEY,          -- 1, 2, ... in the order tried
  kernel  TEXT NOT NULL,
  groups  INTEGER,                      -- G, for a kernel that uses it
  hash    TEXT NOT NULL UNIQUE,         -- of the kernel, equal for isomorphic ones
  error   REAL NOT NULL,                -- of its outputs at the layer, 0..1
  seconds REAL,                         -- of the fit, of one processor
  session INTEGER
) STRICT;
"""

FIT = """
CREATE TABLE fit (
  layer      TEXT NOT NULL,
  operator   TEXT NOT NULL,             -- with its size, such as grouped@0.5
  steps      INTEGER NOT NULL,
  seed       INTEGER NOT NULL,
  pack       TEXT NOT NULL,             -- kernel text with its sizes at the layer
  error      REAL,                      -- of its outputs at the layer, 0..1
  divergence REAL,                      -- of the network with it alone, nats; NULL where it failed
  native_seconds REAL,                  -- of the layer, one image; NULL where it was not timed
  macs       INTEGER NOT NULL,          -- of the layer, one image
  params     INTEGER NOT NULL,
  weights    TEXT NOT NULL DEFAULT '',  -- sha256, in DIR/weights
  reason     TEXT NOT NULL DEFAULT '',  -- why it failed
  seconds    REAL,                      -- of fit, score and timing, of one processor
  session    INTEGER,
  PRIMARY KEY (layer, operator, steps, seed)
) STRICT;
"""

CHOICE = """
CREATE TABLE choice (
  candidate INTEGER NOT NULL REFERENCES network (id),
  layer     TEXT NOT NULL,
  operator  TEXT NOT NULL,              -- of the table fit, or keep
  PRIMARY KEY (candidate, layer)
) STRICT;
"""

# A network with the state of its training from the search's own seed: nothing is stored in it.
CANDIDATE = """
CREATE VIEW candidate AS
  SELECT network.id, name, network.kind, number, budget, kernel, pack, hash, origin, parents,
         layer_macs,
         CASE state WHEN 'queued' THEN 'new' ELSE state END AS status, reason, log,
         macs, params, val_accuracy, latency_ms, latency_spread_ms, speedup, speedup_spread,
         engine, seconds, session, memory_format, role, divergence, tuned_divergence, weights,
         (SELECT coalesce(max(rung.number), 0) FROM rung WHERE rung.candidate = network.id) AS rung
  FROM network JOIN task ON task.candidate = network.id AND task.kind = 'accuracy';
"""

SCHEMA = f"""
CREATE TABLE study (
  id            INTEGER PRIMARY KEY CHECK (id = 1),
  options       TEXT NOT NULL,          -- JSON, every option with its value
  seed          INTEGER NOT NULL,
  data          TEXT NOT NULL,          -- what the images are, in words
  data_checksum TEXT NOT NULL,          -- sha256
  validation_images INTEGER NOT NULL,   -- in the split that scores are taken on
  test_images   INTEGER NOT NULL,       -- in the split for finalists and controls
  targets       TEXT NOT NULL,          -- the layers that are replaced, one line each
  created       REAL NOT NULL,          -- seconds since 1970
  model_record  TEXT NOT NULL DEFAULT '', -- JSON: the unchanged network's structure and answers
  test_groups   TEXT NOT NULL DEFAULT '', -- JSON: a number per test image, equal for those that
                                          -- show the same thing; '' = each image its own
  format        INTEGER NOT NULL DEFAULT 3, -- of the study when it was begun
  task          TEXT NOT NULL DEFAULT ''  -- JSON: name and metric; '' = classification
) STRICT;
{SESSION}
CREATE TABLE draw (
  idx     INTEGER PRIMARY KEY,
  outcome TEXT NOT NULL CHECK (outcome IN ('trial', 'skipped', 'duplicate', 'unsolved')),
  reason  TEXT NOT NULL DEFAULT ''
) STRICT;
{NETWORK}
{ITEM}
{RUNG}
CREATE TABLE epoch (
  candidate INTEGER NOT NULL REFERENCES network (id),
  number    INTEGER NOT NULL,
  accuracy  REAL NOT NULL,
  loss      REAL NOT NULL,
  seconds   REAL NOT NULL,              -- since the training began
  processor REAL,                       -- the same as processor time
  PRIMARY KEY (candidate, number)
) STRICT;
{TIMING}
{FINAL}
{AUDIT}
{SCREENED}
{FIT}
{CHOICE}
{TASK}
{CANDIDATE}
"""

# What a search did before format 4, when it had no choice; a study of format 3 goes on with it.
BEFORE_4 = {
    "strategy": "random",
    "start": "random",
    "random_share": 0.2,
    "norm": "none",
    "pretests": "no",
}


def _without(table: str, *columns: str) -> str:
    """A table as it was before it had these columns."""
    lines = table.splitlines(keepends=True)
    return "".join(line for line in lines if line.split()[:1] not in [[c] for c in columns])


# Tables and views as older formats had them, for studies on their way.
NETWORK_8 = _without(NETWORK, "tuned_divergence")
CANDIDATE_8 = CANDIDATE.replace(" tuned_divergence,", "")
NETWORK_7 = _without(NETWORK_8, "error")
NETWORK_6 = _without(NETWORK_7, "role", "divergence", "weights")
CANDIDATE_6 = """
CREATE VIEW candidate AS
  SELECT network.id, name, network.kind, number, budget, kernel, pack, hash, origin, parents,
         layer_macs,
         CASE state WHEN 'queued' THEN 'new' ELSE state END AS status, reason, log,
         macs, params, val_accuracy, latency_ms, latency_spread_ms, speedup, speedup_spread,
         engine, seconds, session, memory_format,
         (SELECT coalesce(max(rung.number), 0) FROM rung WHERE rung.candidate = network.id) AS rung
  FROM network JOIN task ON task.candidate = network.id AND task.kind = 'accuracy';
"""
FINAL_3 = _without(FINAL, "hits")
TIMING_9 = TIMING.replace(", 'gpu', 'gpu-compiled', 'gpu-graph'", "")
TIMING_5 = _without(TIMING_9, "processor")
TIMING_4 = _without(TIMING_5, "seconds").replace(", 'native'", "")
TIMING_3 = _without(TIMING_9, "speedup_spread", "seconds")
SESSION_1 = _without(SESSION, "seconds").replace(
    "begun    REAL NOT NULL, ", "begun    REAL NOT NULL "
)
CANDIDATE_2 = """
CREATE TABLE candidate (
  id         INTEGER PRIMARY KEY,       -- in the order of training
  name       TEXT NOT NULL UNIQUE,      -- baseline, the control's name, or the index of the draw
  kind       TEXT NOT NULL CHECK (kind IN ('baseline', 'control', 'find')),
  number     INTEGER UNIQUE,            -- finds: 0, 1, 2, ... without the draws that gave none
  budget     TEXT NOT NULL DEFAULT '',  -- what it was solved for; '' where no budget counts
  kernel     TEXT NOT NULL DEFAULT '',  -- kernel text; '' for the baseline
  pack       TEXT NOT NULL DEFAULT '',  -- kernel text with one line of sizes per target
  hash       TEXT,                      -- of the kernel, equal for isomorphic ones
  layer_macs INTEGER,                   -- of the layers replaced: what the budget counts
  status     TEXT NOT NULL CHECK (status IN ('new', 'running', 'done', 'pruned', 'failed')),
  reason     TEXT NOT NULL DEFAULT '',  -- why failed or pruned: kind and message
  log        TEXT NOT NULL DEFAULT '',  -- last lines of output of a failed one
  macs       INTEGER,                   -- of the whole network, one image
  params     INTEGER,                   -- of the whole network
  val_accuracy REAL,                    -- after the last epoch trained, 0..1
  latency_ms REAL,                      -- one forward of the whole network, its fastest engine
  latency_spread_ms REAL,               -- interquartile range
  speedup    REAL,                      -- against the fastest engine of the unchanged network
  engine     TEXT NOT NULL DEFAULT '',  -- of these figures: eager or compiled
  seconds    REAL,                      -- of training
  session    INTEGER,                   -- the run of the driver that trained it
  UNIQUE (hash, budget)
) STRICT;
"""
TIMING_2 = TIMING_3.replace("network (id)", "candidate (id)")
FINAL_2 = """
CREATE TABLE final (
  candidate INTEGER NOT NULL REFERENCES candidate (id),
  seed      INTEGER NOT NULL,
  epochs    INTEGER NOT NULL,
  status    TEXT NOT NULL CHECK (status IN ('done', 'failed')),
  reason    TEXT NOT NULL DEFAULT '',
  val_accuracy  REAL,                   -- 0..1
  test_accuracy REAL,                   -- 0..1
  seconds   REAL,
  session   INTEGER,
  PRIMARY KEY (candidate, seed, epochs)
) STRICT;
"""


def _set_options(table: str) -> str:
    """What an upgrade to format 4 writes into the stored options of `table`."""
    words = {name: f"'{x}'" if isinstance(x, str) else str(x) for name, x in BEFORE_4.items()}
    words["lag"] = "max(4, coalesce(json_extract(options, '$.workers'), 1))"
    words["primitives"] = "nullif(json_extract(options, '$.primitives'), '5..12')"  # the default
    pairs = ", ".join(f"'$.{name}', {value}" for name, value in words.items())
    return f"UPDATE {table} SET options = json_set(options, {pairs});\n"


# How a study of format N becomes one of format N + 1.  Latencies of format 1 were compared with
# the eager network alone: they are taken again.  Finals of format 3 do not say which images they
# got right, and their seeds were next to the search's: they are trained again.  Before format 4 no
# kernel had norms.
UPGRADES = {
    1: f"""
ALTER TABLE candidate RENAME TO old_candidate;
{CANDIDATE_2}
INSERT INTO candidate (id, name, kind, number, budget, kernel, pack, hash, layer_macs, status,
                       reason, log, macs, params, val_accuracy, seconds, session)
  SELECT id, name, kind, number,
         CASE WHEN kind = 'find' OR name = 'grouped'
              THEN (SELECT json_extract(options, '$.budget') FROM study) ELSE '' END,
         kernel, pack, hash, layer_macs, status, reason, log, macs, params, val_accuracy, seconds,
         CASE WHEN status IN ('done', 'pruned', 'failed') THEN 1 END
  FROM old_candidate;
DROP TABLE old_candidate;
{SESSION_1}
INSERT INTO session SELECT 1, options, versions, machine, created FROM study;
{TIMING_2}
{FINAL_2}
ALTER TABLE study ADD COLUMN test_images INTEGER NOT NULL DEFAULT 0;
ALTER TABLE study DROP COLUMN versions;
ALTER TABLE study DROP COLUMN machine;
DELETE FROM task WHERE kind = 'latency';
INSERT INTO task (candidate, kind, requires, state)
  SELECT id, 'latency', '{REQUIRES["latency"]}', 'queued'
  FROM candidate WHERE status = 'done';
""",
    2: f"""
PRAGMA legacy_alter_table = OFF;
ALTER TABLE candidate RENAME TO network;
ALTER TABLE task RENAME TO old_task;
{TASK}
INSERT INTO task (candidate, kind, requires, state, attempt, reason, log)
  SELECT network.id, 'accuracy', '{REQUIRES["accuracy"]}',
         CASE status WHEN 'new' THEN 'queued' ELSE status END, coalesce(attempt, 0),
         network.reason, log
  FROM network LEFT JOIN old_task ON candidate = network.id AND old_task.kind = 'accuracy';
INSERT INTO task (candidate, kind, requires, state, attempt, reason)
  SELECT candidate, kind, requires, state, attempt, reason FROM old_task WHERE kind = 'latency';
DROP TABLE old_task;
ALTER TABLE final RENAME TO old_final;
{FINAL_3}
INSERT INTO final
  SELECT candidate, seed, epochs, val_accuracy, test_accuracy, seconds, session
  FROM old_final WHERE status = 'done';
INSERT INTO task (candidate, kind, seed, epochs, requires, state, attempt, reason)
  SELECT candidate, 'final', seed, epochs, '{REQUIRES["final"]}', status, 1, reason
  FROM old_final;
DROP TABLE old_final;
ALTER TABLE network DROP COLUMN status;
ALTER TABLE network DROP COLUMN reason;
ALTER TABLE network DROP COLUMN log;
""",
    3: f"""
DROP VIEW IF EXISTS candidate;
ALTER TABLE study ADD COLUMN model_record TEXT NOT NULL DEFAULT '';
ALTER TABLE study ADD COLUMN test_groups TEXT NOT NULL DEFAULT '';
ALTER TABLE network ADD COLUMN speedup_spread REAL;
ALTER TABLE epoch ADD COLUMN processor REAL;
ALTER TABLE network ADD COLUMN memory_format TEXT NOT NULL DEFAULT '';
UPDATE network SET memory_format = 'contiguous';
ALTER TABLE timing ADD COLUMN speedup_spread REAL;
DROP TABLE final;
{FINAL}
{AUDIT}
DELETE FROM task WHERE kind = 'final';
ALTER TABLE network ADD COLUMN origin TEXT NOT NULL DEFAULT '';
ALTER TABLE network ADD COLUMN parents TEXT NOT NULL DEFAULT '';
ALTER TABLE network ADD COLUMN spread REAL;
ALTER TABLE network ADD COLUMN naswot REAL;
ALTER TABLE network ADD COLUMN fingerprint TEXT;
UPDATE network SET origin = 'draw' WHERE kind = 'find';
ALTER TABLE task RENAME TO old_task;
{TASK}
INSERT INTO task SELECT * FROM old_task;
DROP TABLE old_task;
{ITEM}
INSERT INTO item SELECT number, id, 2 FROM network WHERE kind = 'find';
{RUNG}
INSERT INTO rung
  SELECT network.id, 2, study.seed, json_extract(study.options, '$.epochs'), val_accuracy,
         seconds, session
  FROM study JOIN network JOIN task ON task.candidate = network.id AND task.kind = 'accuracy'
  WHERE task.state = 'done' AND val_accuracy IS NOT NULL;
ALTER TABLE study ADD COLUMN format INTEGER NOT NULL DEFAULT 3;
{"".join(_set_options(table) for table in ("study", "session"))}
{CANDIDATE_6}
""",
    4: f"""
ALTER TABLE session ADD COLUMN seconds REAL;
ALTER TABLE timing RENAME TO old_timing;
{TIMING}
INSERT INTO timing (candidate, engine, latency_ms, spread_ms, speedup, against, batch, reason,
                    session, speedup_spread)
  SELECT candidate, engine, latency_ms, spread_ms, speedup, against, batch, reason, session,
         speedup_spread
  FROM old_timing;
DROP TABLE old_timing;
""",
    5: f"""
ALTER TABLE timing RENAME TO old_timing;
{TIMING}
INSERT INTO timing (candidate, engine, latency_ms, spread_ms, speedup, against, batch, reason,
                    session, speedup_spread, seconds)
  SELECT candidate, engine, latency_ms, spread_ms, speedup, against, batch, reason, session,
         speedup_spread, seconds
  FROM old_timing;
DROP TABLE old_timing;
""",
    6: f"""
DROP VIEW candidate;
ALTER TABLE network ADD COLUMN role TEXT NOT NULL DEFAULT '';
ALTER TABLE network ADD COLUMN divergence REAL;
ALTER TABLE network ADD COLUMN weights TEXT NOT NULL DEFAULT '';
{SCREENED}
{FIT}
{CHOICE}
{CANDIDATE_8}
""",
    7: "ALTER TABLE network ADD COLUMN error REAL;",
    8: f"""
DROP VIEW candidate;
ALTER TABLE network ADD COLUMN tuned_divergence REAL;
ALTER TABLE study ADD COLUMN task TEXT NOT NULL DEFAULT '';
{CANDIDATE}
""",
    9: f"""
ALTER TABLE timing RENAME TO old_timing;
{TIMING}
INSERT INTO timing SELECT * FROM old_timing;
DROP TABLE old_timing;
""",
}
