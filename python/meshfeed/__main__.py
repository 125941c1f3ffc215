"""`python -m meshfeed`: the command, or flags for compilers."""

import sys

if sys.argv[1:] and all(word in ("--cflags", "--libs", "--pkgconfigdir") for word in sys.argv[1:]):
    from meshfeed._native.linking import main as print_flags

    print_flags(sys.argv[1:])
else:
    from meshfeed._command import main

    main()
