"""The columns that metrics of references read: what the Predictor writes for each row."""

# Of the first reference: its score, its tokens, and those that the model did not read.
SCORE, LENGTH, CUT = "forced_score", "forced_length", "forced_cut"
# The attention while the reference is the output, and the tokens of both sides.
ALIGNMENT, SOURCE, TARGET = "forced_alignment", "forced_source_pieces", "forced_target_pieces"
FORCED_COLUMNS = (SCORE, LENGTH, CUT, ALIGNMENT, SOURCE, TARGET)
