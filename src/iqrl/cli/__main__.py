"""`python -m iqrl.cli` is the command `iqrl`, as `python -m iqrl` is."""

import sys

from iqrl.cli.main import main

sys.exit(main())
