"""Numbers with bounds, as types of the options of layers and of the keys of YAML files."""

from typing import Annotated

from annotated_types import Ge, Gt, Le, Lt

Share = Annotated[float, Ge(0.0), Le(1.0)]
Fraction = Annotated[float, Gt(0.0), Lt(1.0)]
Rate = Annotated[float, Ge(0.0), Lt(1.0)]
DecayRate = Annotated[float, Gt(0.0), Le(1.0)]
PositiveFloat = Annotated[float, Gt(0.0)]
NonNegative = Annotated[float, Ge(0.0)]
Positive = Annotated[int, Ge(1), Le(10**9)]
Count = Annotated[int, Ge(0), Le(2**63 - 1)]  # ML Metadata and TensorFlow store 64 bits
Size = Annotated[int, Ge(1), Le(65_536)]  # of a network or a search
# Added to a variance: smaller numbers vanish in float32, larger ones replace the variance.
VarianceOffset = Annotated[float, Ge(1e-12), Le(0.1)]
LayerCount = Annotated[int, Ge(1), Le(8)]  # of a small network
