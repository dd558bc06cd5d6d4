"""The schemas of older formats, as a canvas of their time wrote them; a study of one of these is
brought up to date by UPGRADES (schema.py).
"""

from __future__ import annotations

from .schema import (
    CANDIDATE,
    CANDIDATE_6,
    CANDIDATE_8,
    CHOICE,
    FIT,
    NETWORK,
    NETWORK_6,
    NETWORK_7,
    NETWORK_8,
    SCHEMA,
    SCREENED,
    SESSION,
    SESSION_1,
    TIMING,
    TIMING_4,
    TIMING_5,
    TIMING_9,
)

FORMAT_1 = """
CREATE TABLE candidate (
  id         INTEGER PRIMARY KEY,
  name       TEXT NOT NULL UNIQUE,
  kind       TEXT NOT NULL CHECK (kind IN ('baseline', 'control', 'find')),
  number     INTEGER UNIQUE,
  kernel     TEXT NOT NULL DEFAULT '',
  pack       TEXT NOT NULL DEFAULT '',
  hash       TEXT UNIQUE,
  layer_macs INTEGER,
  status     TEXT NOT NULL CHECK (status IN ('new', 'running', 'done', 'pruned', 'failed')),
  reason     TEXT NOT NULL DEFAULT '',
  log        TEXT NOT NULL DEFAULT '',
  macs       INTEGER,
  params     INTEGER,
  val_accuracy REAL,
  latency_ms REAL,
  latency_spread_ms REAL,
  speedup    REAL,
  seconds    REAL
) STRICT;
CREATE TABLE draw (
  idx     INTEGER PRIMARY KEY,
  outcome TEXT NOT NULL CHECK (outcome IN ('trial', 'skipped', 'duplicate', 'unsolved')),
  reason  TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE TABLE epoch (
  candidate INTEGER NOT NULL REFERENCES candidate (id),
  number    INTEGER NOT NULL,
  accuracy  REAL NOT NULL,
  loss      REAL NOT NULL,
  seconds   REAL NOT NULL,
  PRIMARY KEY (candidate, number)
) STRICT;
CREATE TABLE study (
  id            INTEGER PRIMARY KEY CHECK (id = 1),
  options       TEXT NOT NULL,
  seed          INTEGER NOT NULL,
  data          TEXT NOT NULL,
  data_checksum TEXT NOT NULL,
  validation_images INTEGER NOT NULL,
  targets       TEXT NOT NULL,
  versions      TEXT NOT NULL,
  machine       TEXT NOT NULL,
  created       REAL NOT NULL
) STRICT;
CREATE TABLE task (
  id        INTEGER PRIMARY KEY,
  candidate INTEGER NOT NULL REFERENCES candidate (id),
  kind      TEXT NOT NULL CHECK (kind IN ('accuracy', 'latency')),
  requires  TEXT NOT NULL,
  state     TEXT NOT NULL CHECK (state IN ('queued', 'running', 'done', 'failed')),
  attempt   INTEGER NOT NULL DEFAULT 0,
  reason    TEXT NOT NULL DEFAULT '',
  UNIQUE (candidate, kind)
) STRICT;
"""

FORMAT_2 = """
CREATE TABLE candidate (
  id         INTEGER PRIMARY KEY,
  name       TEXT NOT NULL UNIQUE,
  kind       TEXT NOT NULL CHECK (kind IN ('baseline', 'control', 'find')),
  number     INTEGER UNIQUE,
  budget     TEXT NOT NULL DEFAULT '',
  kernel     TEXT NOT NULL DEFAULT '',
  pack       TEXT NOT NULL DEFAULT '',
  hash       TEXT,
  layer_macs INTEGER,
  status     TEXT NOT NULL CHECK (status IN ('new', 'running', 'done', 'pruned', 'failed')),
  reason     TEXT NOT NULL DEFAULT '',
  log        TEXT NOT NULL DEFAULT '',
  macs       INTEGER,
  params     INTEGER,
  val_accuracy REAL,
  latency_ms REAL,
  latency_spread_ms REAL,
  speedup    REAL,
  engine     TEXT NOT NULL DEFAULT '',
  seconds    REAL,
  session    INTEGER,
  UNIQUE (hash, budget)
) STRICT;
CREATE TABLE draw (
  idx     INTEGER PRIMARY KEY,
  outcome TEXT NOT NULL CHECK (outcome IN ('trial', 'skipped', 'duplicate', 'unsolved')),
  reason  TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE TABLE epoch (
  candidate INTEGER NOT NULL REFERENCES candidate (id),
  number    INTEGER NOT NULL,
  accuracy  REAL NOT NULL,
  loss      REAL NOT NULL,
  seconds   REAL NOT NULL,
  PRIMARY KEY (candidate, number)
) STRICT;
CREATE TABLE final (
  candidate INTEGER NOT NULL REFERENCES candidate (id),
  seed      INTEGER NOT NULL,
  epochs    INTEGER NOT NULL,
  status    TEXT NOT NULL CHECK (status IN ('done', 'failed')),
  reason    TEXT NOT NULL DEFAULT '',
  val_accuracy  REAL,
  test_accuracy REAL,
  seconds   REAL,
  session   INTEGER,
  PRIMARY KEY (candidate, seed, epochs)
) STRICT;
CREATE TABLE session (
  id       INTEGER PRIMARY KEY,
  options  TEXT NOT NULL,
  versions TEXT NOT NULL,
  machine  TEXT NOT NULL,
  begun    REAL NOT NULL
) STRICT;
CREATE TABLE study (
  id            INTEGER PRIMARY KEY CHECK (id = 1),
  options       TEXT NOT NULL,
  seed          INTEGER NOT NULL,
  data          TEXT NOT NULL,
  data_checksum TEXT NOT NULL,
  validation_images INTEGER NOT NULL,
  test_images   INTEGER NOT NULL,
  targets       TEXT NOT NULL,
  created       REAL NOT NULL
) STRICT;
CREATE TABLE task (
  id        INTEGER PRIMARY KEY,
  candidate INTEGER NOT NULL REFERENCES candidate (id),
  kind      TEXT NOT NULL CHECK (kind IN ('accuracy', 'latency')),
  requires  TEXT NOT NULL,
  state     TEXT NOT NULL CHECK (state IN ('queued', 'running', 'done', 'failed')),
  attempt   INTEGER NOT NULL DEFAULT 0,
  reason    TEXT NOT NULL DEFAULT '',
  UNIQUE (candidate, kind)
) STRICT;
CREATE TABLE timing (
  candidate  INTEGER NOT NULL REFERENCES candidate (id),
  engine     TEXT NOT NULL CHECK (engine IN ('eager', 'compiled')),
  latency_ms REAL,
  spread_ms  REAL,
  speedup    REAL,
  against    TEXT NOT NULL DEFAULT '',
  batch      INTEGER NOT NULL,
  reason     TEXT NOT NULL DEFAULT '',
  session    INTEGER,
  PRIMARY KEY (candidate, engine)
) STRICT;
"""

FORMAT_3 = """
CREATE TABLE draw (
  idx     INTEGER PRIMARY KEY,
  outcome TEXT NOT NULL CHECK (outcome IN ('trial', 'skipped', 'duplicate', 'unsolved')),
  reason  TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE TABLE epoch (
  candidate INTEGER NOT NULL REFERENCES network (id),
  number    INTEGER NOT NULL,
  accuracy  REAL NOT NULL,
  loss      REAL NOT NULL,
  seconds   REAL NOT NULL,
  PRIMARY KEY (candidate, number)
) STRICT;
CREATE TABLE final (
  candidate INTEGER NOT NULL REFERENCES network (id),
  seed      INTEGER NOT NULL,
  epochs    INTEGER NOT NULL,
  val_accuracy  REAL NOT NULL,
  test_accuracy REAL NOT NULL,
  seconds   REAL,
  session   INTEGER,
  PRIMARY KEY (candidate, seed, epochs)
) STRICT;
CREATE TABLE network (
  id         INTEGER PRIMARY KEY,
  name       TEXT NOT NULL UNIQUE,
  kind       TEXT NOT NULL CHECK (kind IN ('baseline', 'control', 'find')),
  number     INTEGER UNIQUE,
  budget     TEXT NOT NULL DEFAULT '',
  kernel     TEXT NOT NULL DEFAULT '',
  pack       TEXT NOT NULL DEFAULT '',
  hash       TEXT,
  layer_macs INTEGER,
  macs       INTEGER,
  params     INTEGER,
  val_accuracy REAL,
  latency_ms REAL,
  latency_spread_ms REAL,
  speedup    REAL,
  engine     TEXT NOT NULL DEFAULT '',
  seconds    REAL,
  session    INTEGER,
  UNIQUE (hash, budget)
) STRICT;
CREATE TABLE session (
  id       INTEGER PRIMARY KEY,
  options  TEXT NOT NULL,
  versions TEXT NOT NULL,
  machine  TEXT NOT NULL,
  begun    REAL NOT NULL
) STRICT;
CREATE TABLE study (
  id            INTEGER PRIMARY KEY CHECK (id = 1),
  options       TEXT NOT NULL,
  seed          INTEGER NOT NULL,
  data          TEXT NOT NULL,
  data_checksum TEXT NOT NULL,
  validation_images INTEGER NOT NULL,
  test_images   INTEGER NOT NULL,
  targets       TEXT NOT NULL,
  created       REAL NOT NULL
) STRICT;
CREATE TABLE task (
  id        INTEGER PRIMARY KEY,
  candidate INTEGER NOT NULL REFERENCES network (id),
  kind      TEXT NOT NULL CHECK (kind IN ('accuracy', 'latency', 'final')),
  seed      INTEGER NOT NULL DEFAULT 0,
  epochs    INTEGER NOT NULL DEFAULT 0,
  requires  TEXT NOT NULL,
  state     TEXT NOT NULL CHECK (state IN ('queued', 'running', 'done', 'pruned', 'failed')),
  attempt   INTEGER NOT NULL DEFAULT 0,
  reason    TEXT NOT NULL DEFAULT '',
  log       TEXT NOT NULL DEFAULT '',
  UNIQUE (candidate, kind, seed, epochs)
) STRICT;
CREATE TABLE timing (
  candidate  INTEGER NOT NULL REFERENCES network (id),
  engine     TEXT NOT NULL CHECK (engine IN ('eager', 'compiled')),
  latency_ms REAL,
  spread_ms  REAL,
  speedup    REAL,
  against    TEXT NOT NULL DEFAULT '',
  batch      INTEGER NOT NULL,
  reason     TEXT NOT NULL DEFAULT '',
  session    INTEGER,
  PRIMARY KEY (candidate, engine)
) STRICT;
CREATE VIEW candidate AS
  SELECT network.id, name, network.kind, number, budget, kernel, pack, hash, layer_macs,
         CASE state WHEN 'queued' THEN 'new' ELSE state END AS status, reason, log,
         macs, params, val_accuracy, latency_ms, latency_spread_ms, speedup, engine, seconds,
         session
  FROM network JOIN task ON task.candidate = network.id AND task.kind = 'accuracy';
"""

STUDY_8 = """
  format        INTEGER NOT NULL DEFAULT 3  -- of the study when it was begun
) STRICT;
"""
STUDY_9 = """
  format        INTEGER NOT NULL DEFAULT 3, -- of the study when it was begun
  task          TEXT NOT NULL DEFAULT ''  -- JSON: name and metric; '' = classification
) STRICT;
"""
FORMAT_9 = SCHEMA.replace(TIMING, TIMING_9)
FORMAT_8 = FORMAT_9
for new, old in ((STUDY_9, STUDY_8), (NETWORK, NETWORK_8), (CANDIDATE, CANDIDATE_8)):
    FORMAT_8 = FORMAT_8.replace(new, old)
FORMAT_7 = FORMAT_8.replace(NETWORK_8, NETWORK_7)
FORMAT_6 = FORMAT_7
for new, old in (
    (NETWORK_7, NETWORK_6),
    (SCREENED, ""),
    (FIT, ""),
    (CHOICE, ""),
    (CANDIDATE_8, CANDIDATE_6),
):
    FORMAT_6 = FORMAT_6.replace(new, old)
FORMAT_5 = FORMAT_6.replace(TIMING_9, TIMING_5)
FORMAT_4 = FORMAT_6.replace(TIMING_9, TIMING_4).replace(SESSION, SESSION_1)

SCHEMAS = {
    1: FORMAT_1,
    2: FORMAT_2,
    3: FORMAT_3,
    4: FORMAT_4,
    5: FORMAT_5,
    6: FORMAT_6,
    7: FORMAT_7,
    8: FORMAT_8,
    9: FORMAT_9,
}
