#[test]
fn a_scan_keeps_the_length() {
    ml_core::fault::point("mamba2-integ");

    assert_eq!(2, ml::mamba2::forward(&[1.0, 2.0]).len());
}
