#[test]
fn both_actions_are_taken() {
    ml_core::fault::point("dqn-collapse");

    assert_ne!(ml_dqn::greedy([1.0, 0.0]), ml_dqn::greedy([0.0, 1.0]));
}
