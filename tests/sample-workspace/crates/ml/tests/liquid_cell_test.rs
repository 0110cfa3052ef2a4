#[test]
fn a_cell_at_rest_stays() {
    ml_core::fault::point("liquid-integ");

    assert_eq!(vec![0.0], ml::liquid::forward(&[0.0]));
}
