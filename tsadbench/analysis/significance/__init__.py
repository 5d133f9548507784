"""Do detectors differ: paired tests over sessions, effect sizes, intervals, and when there are too few to tell."""

# Named beforehand, for all data sets and protocols: whoever tests every metric finds a difference in one of them.
PRIMARY = "auprc"
# Differences of at most this much are a tie: the region of practical equivalence.
ROPE = 0.01
