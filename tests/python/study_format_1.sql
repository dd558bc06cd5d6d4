PRAGMA application_id = 1131312723;
PRAGMA user_version = 1;
BEGIN TRANSACTION;
CREATE TABLE candidate (
  id         INTEGER PRIMARY KEY,       -- in the order of training
  name       TEXT NOT NULL UNIQUE,      -- baseline, the control's name, or the index of the draw
  kind       TEXT NOT NULL CHECK (kind IN ('baseline', 'control', 'find')),
  number     INTEGER UNIQUE,            -- finds: 0, 1, 2, ... without the draws that gave none
  kernel     TEXT NOT NULL DEFAULT '',  -- kernel text; '' for the baseline
  pack       TEXT NOT NULL DEFAULT '',  -- kernel text with one line of sizes per target
  hash       TEXT UNIQUE,               -- of the kernel, equal for isomorphic ones
  layer_macs INTEGER,                   -- of the layers replaced: what the budget counts
  status     TEXT NOT NULL CHECK (status IN ('new', 'running', 'done', 'pruned', 'failed')),
  reason     TEXT NOT NULL DEFAULT '',  -- why failed or pruned: kind and sentence
  log        TEXT NOT NULL DEFAULT '',  -- last lines of output of a failed one
  macs       INTEGER,                   -- of the whole network, one image
  params     INTEGER,                   -- of the whole network
  val_accuracy REAL,                    -- after the last epoch trained, 0..1
  latency_ms REAL,                      -- one forward of the whole network, median
  latency_spread_ms REAL,               -- interquartile range
  speedup    REAL,                      -- median of unchanged/candidate over pairs
  seconds    REAL                       -- of training
) STRICT;
INSERT INTO "candidate" VALUES(1,'baseline','baseline',NULL,'','',NULL,NULL,'done','','',60064,2034,4.51253481894150432207e-01,NULL,NULL,NULL,1.3219324769997911062e+00);
INSERT INTO "candidate" VALUES(2,'identity','control',NULL,'canvas 1
kernel identity
a = input                      : C H W
out a
','canvas 1
kernel identity
a = input                      : C H W
out a
bind 3 Cin=8 Cout=8 KH=3 KW=3 H=8 W=8 stride=1
bind 6 Cin=8 Cout=16 KH=3 KW=3 H=8 W=8 stride=2
','d09151781965aff3c355a9dc71c58d93',0,'done','','',4768,306,1.44846796657381621242e-01,NULL,NULL,NULL,6.95314338001480791717e-01);
INSERT INTO "candidate" VALUES(3,'1x1','control',NULL,'canvas 1
kernel pointwise
a = input                      : C H W
b = fc a to=C                  : C H W
out b
','canvas 1
kernel pointwise
a = input                      : C H W
b = fc a to=C                  : C H W
out b
bind 3 Cin=8 Cout=8 KH=3 KW=3 H=8 W=8 stride=1   # w0 [1, 8, 8]
bind 6 Cin=8 Cout=16 KH=3 KW=3 H=8 W=8 stride=2   # w0 [2, 8, 8]
','6fcbc0c76dddc8074d23eecff2283269',6144,'done','','',10912,498,2.56267409470752105526e-01,NULL,NULL,NULL,1.2867385450008441694e+00);
INSERT INTO "candidate" VALUES(4,'depthwise-separable','control',NULL,'canvas 1
kernel depthwise_separable
a = input                      : C H W
b = group a each               : group=C H W
c = unfold b over=H,W k=K      : group=C KH KW H W
d = fc c to=C                  : C H W
e = fc d to=C                  : C H W
out e
','canvas 1
kernel depthwise_separable
a = input                      : C H W
b = group a each               : group=C H W
c = unfold b over=H,W k=K      : group=C KH KW H W
d = fc c to=C                  : C H W
e = fc d to=C                  : C H W
out e
bind 3 Cin=8 Cout=8 KH=3 KW=3 H=8 W=8 stride=1   # w0 [1, 8, 3, 3], w1 [1, 8, 8]
bind 6 Cin=8 Cout=16 KH=3 KW=3 H=8 W=8 stride=2   # w0 [2, 8, 3, 3], w1 [2, 8, 8]
','53fa05b27c95805bdc401d4a0df727cd',13056,'done','','',17824,714,2.75766016713091921541e-01,NULL,NULL,NULL,1.68177774800278712064e+00);
INSERT INTO "candidate" VALUES(5,'grouped','control',NULL,'canvas 1
kernel grouped
a = input                      : C H W
b = group a by=G               : G C/G H W
c = unfold b over=H,W k=K      : G C/G KH KW H W
d = fc c to=C                  : C H W
out d
','canvas 1
kernel grouped
a = input                      : C H W
b = group a by=G               : G C/G H W
c = unfold b over=H,W k=K      : G C/G KH KW H W
d = fc c to=C                  : C H W
out d
bind 3 Cin=8 Cout=8 KH=3 KW=3 H=8 W=8 stride=1 G=2   # w0 [1, 8, 4, 3, 3]
bind 6 Cin=8 Cout=16 KH=3 KW=3 H=8 W=8 stride=2 G=2   # w0 [2, 8, 4, 3, 3]
','29a2b6cae8128af942d462fe37d7b542',27648,'done','','',32416,1170,3.45403899721448470749e-01,NULL,NULL,NULL,1.87636143200143123976e+00);
INSERT INTO "candidate" VALUES(6,'0','find',0,'canvas 1
kernel k0
a = input                      : C H W
b = unfold a over=H,W k=K      : C KH KW H W
c = unfold a over=H k=K        : C KH H W
d = fc c to=x0                 : x0 H W
e = shift d over=H,W by=-1     : x0 H W
f = fc e to=C                  : C H W
g = fc b to=x1                 : x1 H W
h = fc g to=C                  : C H W
i = group h each               : group=C H W
j = mul i f                    : C H W
out j
','canvas 1
kernel k0
a = input                      : C H W
b = unfold a over=H,W k=K      : C KH KW H W
c = unfold a over=H k=K        : C KH H W
d = fc c to=x0                 : x0 H W
e = shift d over=H,W by=-1     : x0 H W
f = fc e to=C                  : C H W
g = fc b to=x1                 : x1 H W
h = fc g to=C                  : C H W
i = group h each               : group=C H W
j = mul i f                    : C H W
out j
bind 3 Cin=8 Cout=8 KH=3 KW=3 H=8 W=8 stride=1 x0=4 x1=2   # w0 [1, 4, 8, 3], w1 [1, 8, 4], w2 [1, 2, 8, 3, 3], w3 [1, 8, 2]
bind 6 Cin=8 Cout=16 KH=3 KW=3 H=8 W=8 stride=2 x0=4 x1=2   # w0 [2, 4, 8, 3], w1 [2, 8, 4], w2 [2, 2, 8, 3, 3], w3 [2, 8, 2]
','2507563e51243fae54eeb7495cef183d',27648,'done','','',32416,1170,3.76044568245125332417e-01,NULL,NULL,NULL,2.9404954080018796958e+00);
INSERT INTO "candidate" VALUES(7,'1','find',1,'canvas 1
kernel k1
a = input                      : C H W
b = unfold a over=W k=K        : C KW H W
c = fc b to=KW                 : channel=KW H W
d = add c b                    : C KW H W
e = fc c to=x0                 : x0 H W
f = fc d to=x1                 : x1 H W
g = fc e to=x2                 : x2 H W
h = fc g to=1                  : 1 H W
i = min h f                    : x1 H W
j = unfold i over=H,W k=K      : x1 KH KW H W
k = fc j to=C                  : C H W
out k
','canvas 1
kernel k1
a = input                      : C H W
b = unfold a over=W k=K        : C KW H W
c = fc b to=KW                 : channel=KW H W
d = add c b                    : C KW H W
e = fc c to=x0                 : x0 H W
f = fc d to=x1                 : x1 H W
g = fc e to=x2                 : x2 H W
h = fc g to=1                  : 1 H W
i = min h f                    : x1 H W
j = unfold i over=H,W k=K      : x1 KH KW H W
k = fc j to=C                  : C H W
out k
bind 3 Cin=8 Cout=8 KH=3 KW=3 H=8 W=8 stride=1 x0=2 x1=2 x2=4   # w0 [1, 3, 8, 3], w1 [1, 2, 3], w2 [1, 2, 8, 3], w3 [1, 4, 2], w4 [1, 1, 4], w5 [1, 8, 2, 3, 3]
bind 6 Cin=8 Cout=16 KH=3 KW=3 H=8 W=8 stride=2 x0=4 x1=2 x2=4   # w0 [2, 3, 8, 3], w1 [2, 4, 3], w2 [2, 2, 8, 3], w3 [2, 4, 4], w4 [2, 1, 4], w5 [2, 8, 2, 3, 3]
','970be97aa1d4119384eadd7d249f3d06',27520,'done','','',32288,1180,2.92479108635097517776e-01,NULL,NULL,NULL,4.34922224899855791591e+00);
INSERT INTO "candidate" VALUES(8,'2','find',2,'canvas 1
kernel k2
a = input                      : C H W
b = unfold a over=H k=K        : C KH H W
c = fc a to=x0                 : x0 H W
d = shift c over=H,W by=1      : x0 H W
e = softmax b over=C,KH,H,W    : C KH H W
f = unfold d over=H k=K        : x0 KH H W
g = fold e max over=KH         : C H W
h = min g f                    : x0 KH H W
i = fc h to=C                  : C H W
out i
','canvas 1
kernel k2
a = input                      : C H W
b = unfold a over=H k=K        : C KH H W
c = fc a to=x0                 : x0 H W
d = shift c over=H,W by=1      : x0 H W
e = softmax b over=C,KH,H,W    : C KH H W
f = unfold d over=H k=K        : x0 KH H W
g = fold e max over=KH         : C H W
h = min g f                    : x0 KH H W
i = fc h to=C                  : C H W
out i
bind 3 Cin=8 Cout=8 KH=3 KW=3 H=8 W=8 stride=1 x0=8   # w0 [1, 8, 8], w1 [1, 8, 8, 3]
bind 6 Cin=8 Cout=16 KH=3 KW=3 H=8 W=8 stride=2 x0=8   # w0 [2, 8, 8], w1 [2, 8, 8, 3]
','d518588cffa865b5e1670e8a38c64543',24576,'running','','',NULL,NULL,NULL,NULL,NULL,NULL,NULL);
CREATE TABLE draw (
  idx     INTEGER PRIMARY KEY,
  outcome TEXT NOT NULL CHECK (outcome IN ('trial', 'skipped', 'duplicate', 'unsolved')),
  reason  TEXT NOT NULL DEFAULT ''
) STRICT;
INSERT INTO "draw" VALUES(0,'trial','');
INSERT INTO "draw" VALUES(1,'trial','');
INSERT INTO "draw" VALUES(2,'trial','');
CREATE TABLE epoch (
  candidate INTEGER NOT NULL REFERENCES candidate (id),
  number    INTEGER NOT NULL,
  accuracy  REAL NOT NULL,
  loss      REAL NOT NULL,
  seconds   REAL NOT NULL,
  PRIMARY KEY (candidate, number)
) STRICT;
INSERT INTO "epoch" VALUES(1,0,4.51253481894150432207e-01,2.23147795682493077507e+00,1.3219324769997911062e+00);
INSERT INTO "epoch" VALUES(2,0,1.44846796657381621242e-01,2.29322469168116294113e+00,6.95314338001480791717e-01);
INSERT INTO "epoch" VALUES(3,0,2.56267409470752105526e-01,2.28757792943483817538e+00,1.2867385450008441694e+00);
INSERT INTO "epoch" VALUES(4,0,2.75766016713091921541e-01,2.23784872773405796309e+00,1.68177774800278712064e+00);
INSERT INTO "epoch" VALUES(5,0,3.45403899721448470749e-01,2.27345192587220834568e+00,1.87636143200143123976e+00);
INSERT INTO "epoch" VALUES(6,0,3.76044568245125332417e-01,2.23039294129621135098e+00,2.9404954080018796958e+00);
INSERT INTO "epoch" VALUES(7,0,2.92479108635097517776e-01,2.26833121144041705008e+00,4.34922224899855791591e+00);
CREATE TABLE study (
  id            INTEGER PRIMARY KEY CHECK (id = 1),
  options       TEXT NOT NULL,          -- JSON, every option with its value
  seed          INTEGER NOT NULL,
  data          TEXT NOT NULL,          -- what the images are, in words
  data_checksum TEXT NOT NULL,          -- sha256
  validation_images INTEGER NOT NULL,   -- in the split that scores are taken on
  targets       TEXT NOT NULL,          -- the layers that are replaced, one line each
  versions      TEXT NOT NULL,          -- JSON: canvas, torch, python
  machine       TEXT NOT NULL,          -- JSON: processor, cores, system
  created       REAL NOT NULL           -- seconds since 1970
) STRICT;
INSERT INTO "study" VALUES(1,'{"model": "small_network:build", "data": "digits", "budget": "macs=0.5x", "width": null, "trials": 4, "epochs": 1, "batch_size": 64, "time_limit": null, "train_limit": null, "seed": 1, "primitives": "5..12", "groups": null, "require": "reach", "policy": "paper", "prune": "macs", "grace": 2, "latency_batch": 1, "workers": 1}',1,'1797 scans of handwritten digits, 8x8, split 60/20/20 % by class','33d62c64d29cf0bee8f6629299b946cff0eeba356596ed013fa8ed41b83f4de7',359,'3 8 8 8 8 3x3 1 1
6 8 16 8 8 3x3 2 1
','{"canvas": "0.1.0", "torch": "2.13.0+cpu", "python": "3.11.7", "sqlite": "3.40.1"}','{"processor": "AMD EPYC", "cores": 2, "system": "Linux-6.18.44-fc-v595-x86_64-with-glibc2.36", "os": "linux"}',1.79524351577507567407e+09);
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
INSERT INTO "task" VALUES(2,2,'accuracy','{"cores": 1}','done',1,'');
INSERT INTO "task" VALUES(3,3,'accuracy','{"cores": 1}','done',1,'');
INSERT INTO "task" VALUES(4,4,'accuracy','{"cores": 1}','done',1,'');
INSERT INTO "task" VALUES(5,5,'accuracy','{"cores": 1}','done',1,'');
INSERT INTO "task" VALUES(6,1,'latency','{"cores": 1, "exclusive": true}','queued',0,'');
INSERT INTO "task" VALUES(7,2,'latency','{"cores": 1, "exclusive": true}','queued',0,'');
INSERT INTO "task" VALUES(8,3,'latency','{"cores": 1, "exclusive": true}','queued',0,'');
INSERT INTO "task" VALUES(9,4,'latency','{"cores": 1, "exclusive": true}','queued',0,'');
INSERT INTO "task" VALUES(10,5,'latency','{"cores": 1, "exclusive": true}','queued',0,'');
INSERT INTO "task" VALUES(11,6,'accuracy','{"cores": 1}','done',1,'');
INSERT INTO "task" VALUES(12,6,'latency','{"cores": 1, "exclusive": true}','queued',0,'');
INSERT INTO "task" VALUES(13,7,'accuracy','{"cores": 1}','done',1,'');
INSERT INTO "task" VALUES(14,7,'latency','{"cores": 1, "exclusive": true}','queued',0,'');
INSERT INTO "task" VALUES(15,8,'accuracy','{"cores": 1}','running',1,'');
COMMIT;
