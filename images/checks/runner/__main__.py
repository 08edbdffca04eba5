"""Start the runner. Modules are compiled in the image, a program would be in each run."""

import os
import sys

from check_runner import Places, main

sys.exit(main(sys.argv[1:], os.environ, Places()))
