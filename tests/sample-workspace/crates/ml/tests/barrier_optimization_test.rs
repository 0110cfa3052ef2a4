#[test]
fn a_barrier_keeps_the_policy_inside() {
    ml_core::fault::point("ppo-barrier");

    assert!(ml::ppo::forward(&[0.5])[0] < 1.0);
}
