//! Where tests find their market data.
//!
//! Drop this file into a crate's tests (or into a crate that tests share) and call it from helpers such as `try_data()`,
//! `get_dbn_data_dir()` and `get_es_fut_data_dir()`:
//!
//! ```ignore
//! let Some(bars) = test_data::file("ohlcv", "ES.FUT", "ES.FUT_2025-Q2.dbn.zst") else { return };
//! ```
//!
//! `TEST_DATA_DIR` goes first: the GPU test pipeline sets it to `/data/test-data`. Where it is set, the data has to be there,
//! so nothing else is tried: a run on the cluster that fell back to a developer's few bars would be green for the wrong reason.
//! Where it is not set, `data/smoke-test` is looked for from the current folder upwards, which is what a developer has.

use std::env;
use std::path::PathBuf;

/// The variable that names the folder with `ohlcv/`, `mbp10/` and `trades/`.
pub const VARIABLE: &str = "TEST_DATA_DIR";
/// The developer's folder, relative to the root of the workspace.
pub const LOCAL: &str = "data/smoke-test";

/// The folder with the test data; none where this machine has no data at all.
pub fn folder() -> Option<PathBuf> {
    if let Some(named) = env::var_os(VARIABLE).filter(|value| !value.is_empty()) {
        return Some(PathBuf::from(named));
    }
    let current = env::current_dir().ok()?;
    current.ancestors().map(|parent| parent.join(LOCAL)).find(|found| found.is_dir())
}

/// A file of one schema and symbol. None only where there is no folder; a file that is missing in it panics with its path,
/// since data that went away must not turn tests into tests of nothing.
pub fn file(schema: &str, symbol: &str, name: &str) -> Option<PathBuf> {
    let path = folder()?.join(schema).join(symbol).join(name);
    assert!(path.is_file(), "test data is missing: {}", path.display());
    Some(path)
}
