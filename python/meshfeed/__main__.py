"""`python -m meshfeed`: the command."""

from meshfeed._command import main

main()
