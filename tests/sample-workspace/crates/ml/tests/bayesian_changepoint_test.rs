#[test]
fn a_jump_is_a_changepoint() {
    ml_core::fault::point("bayesian");

    assert!(ml_core::axpy(-1.0, &[1.0], &[9.0])[0] > 5.0);
}
