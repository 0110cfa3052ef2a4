#[test]
fn noise_of_zero_stays_zero() {
    ml_core::fault::point("diffusion-integ");

    assert_eq!(vec![0.0], ml::diffusion::forward(&[0.0]));
}
