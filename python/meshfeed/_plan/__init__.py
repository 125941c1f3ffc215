"""What a plan is made of: the documents that Go reads, and the blocks that it answers."""
