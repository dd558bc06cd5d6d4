BEGIN TRANSACTION;
CREATE TABLE draw (
  idx     INTEGER PRIMARY KEY,
  outcome TEXT NOT NULL CHECK (outcome IN ('trial', 'skipped', 'duplicate', 'unsolved')),
  reason  TEXT NOT NULL DEFAULT ''
) STRICT;
INSERT INTO "draw" VALUES(0,'trial','');
INSERT INTO "draw" VALUES(3,'trial','');
INSERT INTO "draw" VALUES(4,'trial','');
CREATE TABLE epoch (
  candidate INTEGER NOT NULL REFERENCES network (id),
  number    INTEGER NOT NULL,
  accuracy  REAL NOT NULL,
  loss      REAL NOT NULL,
  seconds   REAL NOT NULL,
  PRIMARY KEY (candidate, number)
) STRICT;
INSERT INTO "epoch" VALUES(1,0,0.5,1.0,2.0);
INSERT INTO "epoch" VALUES(3,0,0.5,1.0,2.0);
INSERT INTO "epoch" VALUES(4,0,0.5,1.0,2.0);
CREATE TABLE final (
  candidate INTEGER NOT NULL REFERENCES network (id),
  seed      INTEGER NOT NULL,
  epochs    INTEGER NOT NULL,
  val_accuracy  REAL NOT NULL,          -- 0..1
  test_accuracy REAL NOT NULL,          -- 0..1
  seconds   REAL,
  session   INTEGER,
  PRIMARY KEY (candidate, seed, epochs)
) STRICT;
INSERT INTO "final" VALUES(1,2,6,0.5,0.6,1.0,1);
CREATE TABLE network (
  id         INTEGER PRIMARY KEY,       -- in the order of training
  name       TEXT NOT NULL UNIQUE,      -- baseline, the control's name, or the index of the draw
  kind       TEXT NOT NULL CHECK (kind IN ('baseline', 'control', 'find')),
  number     INTEGER UNIQUE,            -- finds: 0, 1, 2, ... without the draws that gave none
  budget     TEXT NOT NULL DEFAULT '',  -- what it was solved for; '' where no budget counts
  kernel     TEXT NOT NULL DEFAULT '',  -- kernel text; '' for the baseline
  pack       TEXT NOT NULL DEFAULT '',  -- kernel text with one line of sizes per target
  hash       TEXT,                      -- of the kernel, equal for isomorphic ones
  layer_macs INTEGER,                   -- of the layers replaced: what the budget counts
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
INSERT INTO "network" VALUES(1,'baseline','baseline',NULL,'','','',NULL,NULL,1000,10,0.5,1.0,0.1,1.0,'eager',2.0,1);
INSERT INTO "network" VALUES(2,'grouped','control',NULL,'macs=0.5x','','',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'',NULL,NULL);
INSERT INTO "network" VALUES(3,'0','find',0,'macs=0.5x','k','p','h0',100,1000,10,NULL,NULL,NULL,NULL,'',2.0,1);
INSERT INTO "network" VALUES(4,'3','find',1,'macs=0.5x','k','p','h3',100,1000,10,0.5,NULL,NULL,NULL,'',2.0,1);
INSERT INTO "network" VALUES(5,'4','find',2,'macs=0.5x','k','p','h4',100,NULL,NULL,NULL,NULL,NULL,NULL,'',NULL,1);
CREATE TABLE session (
  id       INTEGER PRIMARY KEY,
  options  TEXT NOT NULL,               -- JSON, every option with its value
  versions TEXT NOT NULL,               -- JSON: canvas, torch, python, sqlite
  machine  TEXT NOT NULL,               -- JSON: processor, cores, system
  begun    REAL NOT NULL                -- seconds since 1970
) STRICT;
INSERT INTO "session" VALUES(1,'{"model": "resnet8", "data": "digits", "image_size": null, "images": null, "normalize": null, "flip": null, "crop": null, "budget": "macs=0.5x", "budget_sweep": null, "width": null, "trials": 40, "epochs": 6, "batch_size": 64, "time_limit": null, "train_limit": null, "seed": 1, "primitives": "5..12", "groups": null, "require": "reach", "policy": "paper", "prune": "macs", "grace": 2, "latency_batch": 1, "finalists": 3, "final_epochs": null, "final_seeds": 3, "objectives": "latency,macs", "pick": "fastest within 1.0", "compile": "yes", "deterministic": false, "workers": 1}','{}','{}',1.0);
CREATE TABLE study (
  id            INTEGER PRIMARY KEY CHECK (id = 1),
  options       TEXT NOT NULL,          -- JSON, every option with its value
  seed          INTEGER NOT NULL,
  data          TEXT NOT NULL,          -- what the images are, in words
  data_checksum TEXT NOT NULL,          -- sha256
  validation_images INTEGER NOT NULL,   -- in the split that scores are taken on
  test_images   INTEGER NOT NULL,       -- in the split for finalists and controls
  targets       TEXT NOT NULL,          -- the layers that are replaced, one line each
  created       REAL NOT NULL           -- seconds since 1970
) STRICT;
INSERT INTO "study" VALUES(1,'{"model": "resnet8", "data": "digits", "image_size": null, "images": null, "normalize": null, "flip": null, "crop": null, "budget": "macs=0.5x", "budget_sweep": null, "width": null, "trials": 40, "epochs": 6, "batch_size": 64, "time_limit": null, "train_limit": null, "seed": 1, "primitives": "5..12", "groups": null, "require": "reach", "policy": "paper", "prune": "macs", "grace": 2, "latency_batch": 1, "finalists": 3, "final_epochs": null, "final_seeds": 3, "objectives": "latency,macs", "pick": "fastest within 1.0", "compile": "yes", "deterministic": false, "workers": 1}',1,'digits','0000000000000000000000000000000000000000000000000000000000000000',10,5,'t0 8 8 8 8 3 1 1
',1.0);
CREATE TABLE task (
  id        INTEGER PRIMARY KEY,
  candidate INTEGER NOT NULL REFERENCES network (id),
  kind      TEXT NOT NULL CHECK (kind IN ('accuracy', 'latency', 'final')),
  seed      INTEGER NOT NULL DEFAULT 0, -- of a final
  epochs    INTEGER NOT NULL DEFAULT 0, -- of a final
  requires  TEXT NOT NULL,              -- JSON: what a worker must offer
  state     TEXT NOT NULL CHECK (state IN ('queued', 'running', 'done', 'pruned', 'failed')),
  attempt   INTEGER NOT NULL DEFAULT 0,
  reason    TEXT NOT NULL DEFAULT '',   -- why failed or pruned: kind and message
  log       TEXT NOT NULL DEFAULT '',   -- last lines of output of a failed one
  UNIQUE (candidate, kind, seed, epochs)
) STRICT;
INSERT INTO "task" VALUES(1,1,'accuracy',0,0,'{"cores": 1}','done',1,'','');
INSERT INTO "task" VALUES(2,2,'accuracy',0,0,'{"cores": 1}','failed',0,'unsolved: nothing divides','');
INSERT INTO "task" VALUES(3,3,'accuracy',0,0,'{"cores": 1}','failed',1,'nan: the loss','the log');
INSERT INTO "task" VALUES(4,4,'accuracy',0,0,'{"cores": 1}','pruned',1,'10 % after epoch 1','');
INSERT INTO "task" VALUES(5,5,'accuracy',0,0,'{"cores": 1}','running',1,'','');
INSERT INTO "task" VALUES(6,1,'latency',0,0,'{"cores": 1, "exclusive": true}','done',0,'','');
INSERT INTO "task" VALUES(7,1,'final',2,6,'{"cores": 1}','done',1,'','');
INSERT INTO "task" VALUES(8,1,'final',3,6,'{"cores": 1}','failed',1,'nan: the loss is nan','');
CREATE TABLE timing (
  candidate  INTEGER NOT NULL REFERENCES network (id),
  engine     TEXT NOT NULL CHECK (engine IN ('eager', 'compiled')),
  latency_ms REAL,                      -- one forward of the whole network, median
  spread_ms  REAL,                      -- interquartile range
  speedup    REAL,                      -- median over rounds of unchanged / this
  against    TEXT NOT NULL DEFAULT '',  -- the unchanged network's faster engine
  batch      INTEGER NOT NULL,
  reason     TEXT NOT NULL DEFAULT '',  -- why there are no figures
  session    INTEGER,
  PRIMARY KEY (candidate, engine)
) STRICT;
INSERT INTO "timing" VALUES(1,'eager',1.0,0.1,1.0,'eager',1,'',1);
CREATE VIEW candidate AS
  SELECT network.id, name, network.kind, number, budget, kernel, pack, hash, layer_macs,
         CASE state WHEN 'queued' THEN 'new' ELSE state END AS status, reason, log,
         macs, params, val_accuracy, latency_ms, latency_spread_ms, speedup, engine, seconds,
         session
  FROM network JOIN task ON task.candidate = network.id AND task.kind = 'accuracy';
COMMIT;
PRAGMA application_id = 1131312723;
PRAGMA user_version = 3;
