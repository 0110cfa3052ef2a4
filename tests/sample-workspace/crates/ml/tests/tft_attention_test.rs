#[test]
fn attention_keeps_the_length() {
    ml_core::fault::point("tft-integ-2");

    assert_eq!(3, ml::tft::forward(&[1.0, 2.0, 3.0]).len());
}
