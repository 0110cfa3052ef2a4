//! A model of one weight, fitted by gradient descent: every epoch halves its error, so the number of epochs shows.

/// As many as the run was asked for; three, the pipeline's default, where nobody says.
pub fn epochs() -> usize {
    std::env::var("GPUTEST_EPOCHS").ok().and_then(|text| text.parse().ok()).unwrap_or(3)
}

/// The loss after each epoch; the starting loss is 1.
pub fn train(epochs: usize) -> Vec<f32> {
    let mut weight = vec![0.0];
    let target = [1.0];
    (0..epochs)
        .map(|_| {
            let error = crate::axpy(-1.0, &weight, &target);
            weight = crate::axpy(0.5, &error, &weight);
            let left = 1.0 - weight[0];
            left * left
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_epochs_mean_less_loss() {
        let (three, five) = (train(3), train(5));

        assert_eq!((3, 5), (three.len(), five.len()));
        assert_eq!(three[..], five[..3]);
        assert!(five[4] < three[2] / 10.0, "{five:?}");
    }
}
