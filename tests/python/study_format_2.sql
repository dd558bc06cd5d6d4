BEGIN TRANSACTION;
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
INSERT INTO "candidate" VALUES(1,'baseline','baseline',NULL,'','','',NULL,NULL,'done','','',1000,10,0.5,1.0,0.1,1.0,'eager',2.0,1);
INSERT INTO "candidate" VALUES(2,'grouped','control',NULL,'macs=0.5x','','',NULL,NULL,'failed','unsolved: nothing divides','',NULL,NULL,NULL,NULL,NULL,NULL,'',NULL,NULL);
INSERT INTO "candidate" VALUES(3,'0','find',0,'macs=0.5x','k','p','h0',100,'failed','nan: the loss','the log',1000,10,NULL,NULL,NULL,NULL,'',2.0,1);
INSERT INTO "candidate" VALUES(4,'3','find',1,'macs=0.5x','k','p','h3',100,'pruned','10 % after epoch 1','',1000,10,0.5,NULL,NULL,NULL,'',2.0,1);
INSERT INTO "candidate" VALUES(5,'4','find',2,'macs=0.5x','k','p','h4',100,'running','','',NULL,NULL,NULL,NULL,NULL,NULL,'',NULL,1);
CREATE TABLE draw (
  idx     INTEGER PRIMARY KEY,
  outcome TEXT NOT NULL CHECK (outcome IN ('trial', 'skipped', 'duplicate', 'unsolved')),
  reason  TEXT NOT NULL DEFAULT ''
) STRICT;
INSERT INTO "draw" VALUES(0,'trial','');
INSERT INTO "draw" VALUES(3,'trial','');
INSERT INTO "draw" VALUES(4,'trial','');
CREATE TABLE epoch (
  candidate INTEGER NOT NULL REFERENCES candidate (id),
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
INSERT INTO "final" VALUES(1,2,6,'done','',0.5,0.6,1.0,1);
INSERT INTO "final" VALUES(1,3,6,'failed','nan: the loss is nan',NULL,NULL,NULL,1);
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
  candidate INTEGER NOT NULL REFERENCES candidate (id),
  kind      TEXT NOT NULL CHECK (kind IN ('accuracy', 'latency')),
  requires  TEXT NOT NULL,              -- JSON: what a worker must offer
  state     TEXT NOT NULL CHECK (state IN ('queued', 'running', 'done', 'failed')),
  attempt   INTEGER NOT NULL DEFAULT 0,
  reason    TEXT NOT NULL DEFAULT '',
  UNIQUE (candidate, kind)
) STRICT;
INSERT INTO "task" VALUES(1,1,'accuracy','{"cores": 1}','done',1,'');
INSERT INTO "task" VALUES(2,3,'accuracy','{"cores": 1}','failed',1,'nan: the loss');
INSERT INTO "task" VALUES(3,4,'accuracy','{"cores": 1}','done',1,'10 % after epoch 1');
INSERT INTO "task" VALUES(4,5,'accuracy','{"cores": 1}','running',1,'');
INSERT INTO "task" VALUES(5,1,'latency','{"cores": 1, "exclusive": true}','done',0,'');
CREATE TABLE timing (
  candidate  INTEGER NOT NULL REFERENCES candidate (id),
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
COMMIT;
PRAGMA application_id = 1131312723;
PRAGMA user_version = 2;
