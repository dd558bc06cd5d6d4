BEGIN TRANSACTION;
CREATE TABLE audit (
  candidate INTEGER NOT NULL REFERENCES network (id),
  epochs    INTEGER NOT NULL,
  accuracy  REAL,                       -- on validation after the last epoch, 0..1
  seconds   REAL,
  reason    TEXT NOT NULL DEFAULT '',   -- why there is no accuracy
  PRIMARY KEY (candidate, epochs)
) STRICT;
CREATE TABLE choice (
  candidate INTEGER NOT NULL REFERENCES network (id),
  layer     TEXT NOT NULL,
  operator  TEXT NOT NULL,              -- of the table fit, or keep
  PRIMARY KEY (candidate, layer)
) STRICT;
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
  seconds   REAL NOT NULL,              -- since the training began
  processor REAL,                       -- the same as processor time
  PRIMARY KEY (candidate, number)
) STRICT;
CREATE TABLE final (
  candidate INTEGER NOT NULL REFERENCES network (id),
  seed      INTEGER NOT NULL,
  epochs    INTEGER NOT NULL,
  val_accuracy  REAL NOT NULL,          -- 0..1
  test_accuracy REAL NOT NULL,          -- 0..1
  hits      BLOB NOT NULL,              -- a bit per test image, the first in the highest bit
  seconds   REAL,
  session   INTEGER,
  PRIMARY KEY (candidate, seed, epochs)
) STRICT;
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
INSERT INTO "fit" VALUES('conv1','grouped@0.5',40,1,'pack',0.25,0.5,1.0e-06,100,10,'ab','',1.5,NULL);
CREATE TABLE item (
  number    INTEGER PRIMARY KEY,        -- 0, 1, 2, ... in the order asked
  candidate INTEGER NOT NULL REFERENCES network (id),
  rung      INTEGER NOT NULL,           -- that it is trained to
  UNIQUE (candidate, rung)
) STRICT;
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
  macs       INTEGER,                   -- of the whole network, one image
  params     INTEGER,                   -- of the whole network
  val_accuracy REAL,                    -- after the last epoch trained, mean over its seeds, 0..1
  latency_ms REAL,                      -- one forward of the whole network, its fastest engine
  latency_spread_ms REAL,               -- interquartile range
  speedup    REAL,                      -- against the fastest engine of the unchanged network
  speedup_spread REAL,                  -- interquartile range of the rounds' ratios
  engine     TEXT NOT NULL DEFAULT '',  -- of these figures: eager or compiled
  seconds    REAL,                      -- of training
  session    INTEGER,                   -- the run of the driver that trained it
  memory_format TEXT NOT NULL DEFAULT '', role TEXT NOT NULL DEFAULT '', divergence REAL, weights TEXT NOT NULL DEFAULT '', error REAL, tuned_divergence REAL,  -- of its trainings; '' before the first
  UNIQUE (hash, budget)
) STRICT;
INSERT INTO "network" VALUES(1,'baseline','baseline',NULL,'','','',NULL,'','',NULL,NULL,NULL,NULL,1000,500,0.97,1.5,0.2,1.3,0.1,'compiled',NULL,NULL,'','',NULL,'',NULL,NULL);
INSERT INTO "network" VALUES(2,'identity','control',NULL,'','','',NULL,'','',NULL,NULL,NULL,NULL,20,15,0.66,1.5,0.2,1.3,0.1,'compiled',NULL,NULL,'','',NULL,'',NULL,NULL);
INSERT INTO "network" VALUES(3,'1x1','control',NULL,'','','',NULL,'','',NULL,NULL,NULL,NULL,140,80,0.87,1.5,0.2,1.3,0.1,'compiled',NULL,NULL,'','',NULL,'',NULL,NULL);
INSERT INTO "network" VALUES(4,'grouped','control',NULL,'','','',NULL,'','',NULL,NULL,NULL,NULL,500,250,0.963,1.5,0.2,1.3,0.1,'compiled',NULL,NULL,'','',NULL,'',NULL,NULL);
INSERT INTO "network" VALUES(5,'0','find',0,'','','',NULL,'','',NULL,NULL,NULL,NULL,480,240,0.95,1.5,0.2,1.3,0.1,'compiled',NULL,NULL,'','',NULL,'',NULL,NULL);
INSERT INTO "network" VALUES(6,'5','find',5,'','','',NULL,'','',NULL,NULL,NULL,NULL,300,160,0.2,NULL,NULL,NULL,NULL,'',NULL,NULL,'','',NULL,'',NULL,NULL);
INSERT INTO "network" VALUES(7,'7','find',7,'','','',NULL,'','',NULL,NULL,NULL,NULL,300,160,NULL,NULL,NULL,NULL,NULL,'',NULL,NULL,'','',0.5,'',0.25,NULL);
CREATE TABLE rung (
  candidate INTEGER NOT NULL REFERENCES network (id),
  number    INTEGER NOT NULL CHECK (number IN (1, 2, 3)),
  seed      INTEGER NOT NULL,
  epochs    INTEGER NOT NULL,           -- behind it when it was scored
  accuracy  REAL NOT NULL,              -- on validation, 0..1
  seconds   REAL,                       -- of training from that seed
  session   INTEGER,
  PRIMARY KEY (candidate, number)
) STRICT;
CREATE TABLE screened (
  number  INTEGER PRIMARY KEY,          -- 1, 2, ... in the order tried
  kernel  TEXT NOT NULL,
  groups  INTEGER,                      -- G, for a kernel that uses it
  hash    TEXT NOT NULL UNIQUE,         -- of the kernel, equal for isomorphic ones
  error   REAL NOT NULL,                -- of its outputs at the layer, 0..1
  seconds REAL,                         -- of the fit, of one processor
  session INTEGER
) STRICT;
INSERT INTO "screened" VALUES(1,'kernel 1',NULL,'h1',0.5,0.1,NULL);
CREATE TABLE session (
  id       INTEGER PRIMARY KEY,
  options  TEXT NOT NULL,               -- JSON, every option with its value
  versions TEXT NOT NULL,               -- JSON: canvas, torch, python, sqlite
  machine  TEXT NOT NULL,               -- JSON: processor, cores, system
  begun    REAL NOT NULL                -- seconds since 1970
, seconds REAL) STRICT;
INSERT INTO "session" VALUES(1,'{"model": "resnet8", "data": "digits", "image_size": null, "images": null, "normalize": null, "flip": null, "crop": null, "budget": "macs=0.5x", "budget_sweep": null, "width": null, "trials": 40, "epochs": 6, "strategy": "evolve", "start": "random", "random_share": 0.2, "batch_size": 64, "time_limit": null, "train_limit": null, "seed": 1, "primitives": null, "groups": null, "require": "reach", "norm": "batch", "memory_format": "auto", "draws": "rules", "policy": "paper", "prune": "rungs", "pretests": "yes", "lag": 6, "grace": 2, "latency_batch": 1, "finalists": 1, "final_epochs": null, "final_seeds": 3, "objectives": "latency,macs", "pick": "fastest within 1.0", "compile": "yes", "deterministic": false, "workers": 2}','{"canvas": "0.1.0", "torch": "2.13.0+cpu", "python": "3.11.7", "sqlite": "3.40.1"}','{"processor": "AMD EPYC", "cores": 2, "system": "Linux-6.18.44-fc-v595-x86_64-with-glibc2.36", "os": "linux"}',1.79538803766387844084e+09,NULL);
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
  format        INTEGER NOT NULL DEFAULT 3  -- of the study when it was begun
, task TEXT NOT NULL DEFAULT '') STRICT;
INSERT INTO "study" VALUES(1,'{"model": "resnet8", "data": "digits", "image_size": null, "images": null, "normalize": null, "flip": null, "crop": null, "budget": "macs=0.5x", "budget_sweep": null, "width": null, "trials": 40, "epochs": 6, "strategy": "evolve", "start": "random", "random_share": 0.2, "batch_size": 64, "time_limit": null, "train_limit": null, "seed": 1, "primitives": null, "groups": null, "require": "reach", "norm": "batch", "memory_format": "auto", "draws": "rules", "policy": "paper", "prune": "rungs", "pretests": "yes", "lag": 6, "grace": 2, "latency_batch": 1, "finalists": 1, "final_epochs": null, "final_seeds": 3, "objectives": "latency,macs", "pick": "fastest within 1.0", "compile": "yes", "deterministic": false, "workers": 2}',1,'digits','0000000000000000000000000000000000000000000000000000000000000000',1000,400,'t0 8 8 8 8 3 1 1
',1.79538803671627974515e+09,'','',4,'');
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
INSERT INTO "task" VALUES(1,1,'accuracy',0,0,'{}','done',0,'','');
INSERT INTO "task" VALUES(2,2,'accuracy',0,0,'{}','done',0,'','');
INSERT INTO "task" VALUES(3,3,'accuracy',0,0,'{}','done',0,'','');
INSERT INTO "task" VALUES(4,4,'accuracy',0,0,'{}','done',0,'','');
INSERT INTO "task" VALUES(5,5,'accuracy',0,0,'{}','done',0,'','');
INSERT INTO "task" VALUES(6,6,'accuracy',0,0,'{}','pruned',0,'','');
INSERT INTO "task" VALUES(7,7,'accuracy',0,0,'{}','failed',0,'nan: made up','');
INSERT INTO "task" VALUES(8,1,'latency',0,0,'{"cores": 1, "exclusive": true}','done',1,'','');
INSERT INTO "task" VALUES(9,2,'latency',0,0,'{"cores": 1, "exclusive": true}','done',1,'','');
INSERT INTO "task" VALUES(10,3,'latency',0,0,'{"cores": 1, "exclusive": true}','done',1,'','');
INSERT INTO "task" VALUES(11,4,'latency',0,0,'{"cores": 1, "exclusive": true}','done',1,'','');
INSERT INTO "task" VALUES(12,5,'latency',0,0,'{"cores": 1, "exclusive": true}','done',1,'','');
CREATE TABLE timing (
  candidate  INTEGER NOT NULL REFERENCES network (id),
  engine     TEXT NOT NULL CHECK (engine IN ('eager', 'compiled', 'native')),
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
INSERT INTO "timing" VALUES(1,'eager',2.0,0.1,1.0,0.1,'compiled',1,'',NULL,1.5,1.25);
INSERT INTO "timing" VALUES(1,'compiled',1.5,0.2,1.3,0.1,'compiled',1,'',NULL,NULL,NULL);
INSERT INTO "timing" VALUES(2,'eager',2.0,0.1,1.0,0.1,'compiled',1,'',NULL,1.5,1.25);
INSERT INTO "timing" VALUES(2,'compiled',1.5,0.2,1.3,0.1,'compiled',1,'',NULL,NULL,NULL);
INSERT INTO "timing" VALUES(3,'eager',2.0,0.1,1.0,0.1,'compiled',1,'',NULL,1.5,1.25);
INSERT INTO "timing" VALUES(3,'compiled',1.5,0.2,1.3,0.1,'compiled',1,'',NULL,NULL,NULL);
INSERT INTO "timing" VALUES(4,'eager',2.0,0.1,1.0,0.1,'compiled',1,'',NULL,1.5,1.25);
INSERT INTO "timing" VALUES(4,'compiled',1.5,0.2,1.3,0.1,'compiled',1,'',NULL,NULL,NULL);
INSERT INTO "timing" VALUES(5,'eager',2.0,0.1,1.0,0.1,'compiled',1,'',NULL,1.5,1.25);
INSERT INTO "timing" VALUES(5,'compiled',1.5,0.2,1.3,0.1,'compiled',1,'',NULL,NULL,NULL);
CREATE VIEW candidate AS
  SELECT network.id, name, network.kind, number, budget, kernel, pack, hash, origin, parents,
         layer_macs,
         CASE state WHEN 'queued' THEN 'new' ELSE state END AS status, reason, log,
         macs, params, val_accuracy, latency_ms, latency_spread_ms, speedup, speedup_spread,
         engine, seconds, session, memory_format, role, divergence, tuned_divergence, weights,
         (SELECT coalesce(max(rung.number), 0) FROM rung WHERE rung.candidate = network.id) AS rung
  FROM network JOIN task ON task.candidate = network.id AND task.kind = 'accuracy';
PRAGMA application_id = 1131312723;
PRAGMA user_version = 9;
COMMIT;
