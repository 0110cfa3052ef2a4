//! Eight smoke tests on real market data: `.dbn.zst` files under TEST_DATA_DIR, or the developer's own under data/smoke-test.

use std::path::PathBuf;

use ml_core::test_data;

const ZSTD_MAGIC: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];

fn data(schema: &str) -> PathBuf {
    test_data::file(schema, "ES.FUT", "ES.FUT_2025-Q2.dbn.zst").expect("the workspace carries a little data of its own")
}

fn is_zstd(schema: &str) -> bool {
    std::fs::read(data(schema)).unwrap().starts_with(&ZSTD_MAGIC)
}

#[test]
fn ohlcv_is_there() {
    ml_core::fault::point("dqn-smoke");

    assert!(is_zstd("ohlcv"));
}

#[test]
fn mbp10_is_there() {
    assert!(is_zstd("mbp10"));
}

#[test]
fn trades_are_there() {
    assert!(is_zstd("trades"));
}

#[test]
fn the_three_schemas_are_three_files() {
    let paths = ["ohlcv", "mbp10", "trades"].map(data);

    assert!(paths[0] != paths[1] && paths[1] != paths[2]);
}

#[test]
fn features_are_finite() {
    assert!(ml::dqn::forward(&[4500.25, 4500.5]).iter().all(|value| value.is_finite()));
}

#[test]
fn an_empty_window_gives_no_features() {
    assert!(ml::dqn::forward(&[]).is_empty());
}

#[test]
fn as_many_losses_as_epochs() {
    let epochs = ml_core::training::epochs();

    assert_eq!(epochs, ml_core::training::train(epochs).len());
}

#[test]
fn the_last_loss_is_below_the_first() {
    let losses = ml_core::training::train(ml_core::training::epochs().max(2));

    assert!(losses.last() < losses.first());
}
