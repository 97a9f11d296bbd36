"""What the page Training computes besides the visitor's sentence, once for all visitors."""
