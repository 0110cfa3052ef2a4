#[test]
fn memory_keeps_the_sign() {
    ml_core::fault::point("xlstm-integ");

    assert!(ml::xlstm::forward(&[-1.0])[0] < 0.0);
}
