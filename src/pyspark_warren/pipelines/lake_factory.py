"""Creates the `Lake` for a path: a folder or an object store, Delta or plain Parquet."""

import os
from collections.abc import Mapping

from pyspark_warren.pipelines.lakes import (
    BATCH,
    DELTA,
    DELTA_LOG,
    FORMATS,
    PARQUET,
    Lake,
    format_of,
    lake_folder,
)
from pyspark_warren.pipelines.object_store import ObjectStore, is_object_store, store_of


def new_lake(table: str | os.PathLike[str], kind: str, options: Mapping[str, str] | None = None) -> Lake:
    """Return the lake at `table`, which may not exist yet; `options` configure its object store."""
    if kind not in FORMATS:
        raise ValueError(f"the format of a lake must be {' or '.join(FORMATS)}, not {kind!r}")
    if is_object_store(table):
        store = store_of(table, options)
        if kind == DELTA:
            from pyspark_warren.pipelines.object_store_delta import ObjectStoreDelta

            return ObjectStoreDelta(store)
        from pyspark_warren.pipelines.object_store_parquet import ObjectStoreParquet

        return ObjectStoreParquet(store)
    root = lake_folder(table)
    if kind == DELTA:
        from pyspark_warren.pipelines.delta_lake import DeltaLake

        return DeltaLake(root)
    from pyspark_warren.pipelines.parquet_lake import ParquetLake

    return ParquetLake(root)


def existing_lake(table: str | os.PathLike[str], options: Mapping[str, str] | None = None) -> Lake:
    """Return the lake at `table`. Raises ValueError if there is none."""
    kind = (
        stored_format(store_of(table, options)) if is_object_store(table) else format_of(lake_folder(table))
    )
    if kind is None:
        place = os.fspath(table) if is_object_store(table) else str(lake_folder(table))
        raise ValueError(f"there is no lake in {place!r}")
    return new_lake(table, kind, options)


def stored_format(store: ObjectStore) -> str | None:
    """Return the format of the lake in an object store; None if there is none."""
    names = store.names()
    if DELTA_LOG in names:
        return DELTA
    return PARQUET if any(name.startswith(f"{BATCH}=") for name in names) else None
