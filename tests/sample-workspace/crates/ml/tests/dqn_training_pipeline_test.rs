#[test]
fn the_pipeline_ends_with_a_policy() {
    ml_core::fault::point("dqn-pipeline");

    assert_eq!(1, ml_dqn::greedy([0.0, ml_dqn::update(0.0, 1.0, 0.5)]));
}
