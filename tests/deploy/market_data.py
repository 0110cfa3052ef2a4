"""Small market data files, written with databento's own library: one symbol, three schemas, `.dbn.zst`.

Run as a script it writes the sample workspace's local data: python tests/deploy/market_data.py FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path

import databento_dbn as dbn

NAME = "ES.FUT/ES.FUT_2025-Q2.dbn.zst"
START = 1_743_465_600_000_000_000  # 2025-04-01, in nanoseconds
PRICE = 5_600_250_000_000
SCHEMAS = {"ohlcv": dbn.Schema.OHLCV_1M, "mbp10": dbn.Schema.MBP_10, "trades": dbn.Schema.TRADES}


def records(folder: str, count: int) -> bytes:
    """Return records of one schema, as the library encodes them."""
    out = []
    for index in range(count):
        now, price = START + index * 60_000_000_000, PRICE + index * 250_000_000
        if folder == "ohlcv":
            record = dbn.OHLCVMsg(dbn.RType.OHLCV_1M, 1, 42, now, price, price + 5, price - 5, price, 10 + index)
        elif folder == "mbp10":
            level = dbn.BidAskPair(price, price + 250_000_000, 3, 4, 1, 1)
            record = dbn.MBP10Msg(1, 42, now, price, 1, dbn.Action.ADD, dbn.Side.BID, 0, now, levels=[level] * 10)
        else:
            record = dbn.TradeMsg(1, 42, now, price, 2, dbn.Action.TRADE, dbn.Side.ASK, 0, now)
        out.append(bytes(record))
    return b"".join(out)


def write_dbn(path: Path, folder: str, count: int = 50) -> None:
    """Write one file: metadata and records, compressed by the library itself."""
    metadata = dbn.Metadata(
        "GLBX.MDP3", START, dbn.SType.RAW_SYMBOL, dbn.SType.INSTRUMENT_ID, SCHEMAS[folder], symbols=["ES.FUT"]
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        coder = dbn.Transcoder(file, dbn.Encoding.DBN, dbn.Compression.ZSTD)
        coder.write(bytes(metadata))
        coder.write(records(folder, count))
        coder.finish()


def write_quarter(root: Path, count: int = 50) -> list[Path]:
    """Write the three files of the quarter below a root and return their paths."""
    paths = [root / folder / NAME for folder in SCHEMAS]
    for folder, path in zip(SCHEMAS, paths, strict=True):
        write_dbn(path, folder, count)
    return paths


if __name__ == "__main__":
    write_quarter(Path(sys.argv[1]))
