"""The real worker, which times three rounds instead of thirty: trainings are what a test is about.

python faults_brief_worker.py DRIVER MEMORY      as canvas.workers.worker, see there
"""

import sys

from canvas.nn import latency
from canvas.workers import worker

latency.measure.__defaults__ = (3,)

sys.exit(worker.main())
