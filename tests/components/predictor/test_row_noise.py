from regard.components.common import prediction_table
from regard.components.predictor.row_noise import RowNoise
from regard.core.text_noise import NoiseOptions


def test_the_tag_of_a_changed_input_stays():
    row = prediction_table.Row({"source": "<fr> a dog", "length": 2}, ["x"])
    noise = RowNoise("upper_case", ("source",), NoiseOptions(symbols=("<fr>",)), seed=1)
    assert noise(row, 0).inputs == {"source": "<fr> A DOG", "length": 2}
    assert noise(row, 0).references == ["x"]
