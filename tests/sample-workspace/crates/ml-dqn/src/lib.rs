//! The sample's reinforcement learner: a table of values for two actions.

/// The action with the higher value.
pub fn greedy(values: [f32; 2]) -> usize {
    usize::from(values[1] > values[0])
}

/// One step of Q-learning on one value.
pub fn update(value: f32, reward: f32, rate: f32) -> f32 {
    ml_core::axpy(rate, &[reward - value], &[value])[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_better_action_is_taken() {
        ml_core::fault::point("dqn-lib");

        assert_eq!((0, 1), (greedy([1.0, 0.0]), greedy([0.0, 1.0])));
    }

    #[test]
    fn a_value_moves_towards_its_reward() {
        assert_eq!(0.5, update(0.0, 1.0, 0.5));
    }
}
