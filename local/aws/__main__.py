"""`python -m local.aws`: what `bin/pulumi-resource-aws` runs."""

import sys

from local.aws.server import main

if __name__ == "__main__":
    sys.exit(main())
