"""`python -m s2ac` is the command `s2ac`."""

import sys

from s2ac.cli.main import main

sys.exit(main())
