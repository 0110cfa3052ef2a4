#[test]
fn the_forward_pass_scales() {
    ml_core::fault::point("tft-integ");

    assert!((ml::tft::forward(&[2.0])[0] - 2.6).abs() < 1e-5);
}
