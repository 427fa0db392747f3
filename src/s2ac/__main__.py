"""`python -m s2ac` is the command `s2ac`."""

import sys

from s2ac.cli import main

sys.exit(main())
