"""The command, with children that train nothing: python faults_command.py WORDS..."""

import sys
from pathlib import Path

from canvas.__main__ import main
from canvas.workers import pool

pool.Pool.__init__.__defaults__ = (0, (str(Path(__file__).with_name("faults_worker.py")),))

sys.exit(main())
