"""The real worker, which times three rounds instead of thirty: trainings are what a test is about.

python faults_brief_worker.py DRIVER MEMORY      as canvas.worker, see there
"""

import sys

from canvas import latency, worker

latency.measure.__defaults__ = (3,)

sys.exit(worker.main())
