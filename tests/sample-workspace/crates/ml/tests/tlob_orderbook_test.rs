#[test]
fn an_empty_book_gives_nothing() {
    ml_core::fault::point("tlob-integ");

    assert!(ml::tlob::forward(&[]).is_empty());
}
