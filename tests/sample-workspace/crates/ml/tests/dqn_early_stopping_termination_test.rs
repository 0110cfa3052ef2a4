#[test]
fn training_stops_when_nothing_improves() {
    ml_core::fault::point("dqn-early-stop");

    assert!(ml_core::training::train(30).windows(2).any(|pair| pair[0] - pair[1] < 1e-6));
}
