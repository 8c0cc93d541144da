"""The module that tfx-bsl 1.21 dropped, as far as TFDV 1.16.1 needs it: a name to import."""


class RecordBatchSQLSliceQuery:
    """Slices of record batches by SQL; ZetaSQL, which ran them, is gone from tfx-bsl."""

    def __init__(self, sql, arrow_schema):
        del sql, arrow_schema
        raise NotImplementedError(
            "SQL slices need ml-metadata and TFDV 1.21 (glibc >= 2.39); use slice functions."
        )
