//! The ten sample models. Each is a module with its own tests, so that `cargo test --lib -- <model>` finds them by name.

macro_rules! model {
    ($name:ident, $gain:literal, $suite:literal) => {
        pub mod $name {
            /// The model's whole forward pass.
            pub fn forward(input: &[f32]) -> Vec<f32> {
                ml_core::axpy($gain, input, input)
            }

            #[cfg(test)]
            mod tests {
                #[test]
                fn forward_is_finite() {
                    ml_core::fault::point($suite);

                    assert!(super::forward(&[0.0, 1.0, -1.0]).iter().all(|value| value.is_finite()));
                }

                #[test]
                fn training_lowers_the_loss() {
                    let losses = ml_core::training::train(ml_core::training::epochs());

                    assert!(losses.windows(2).all(|pair| pair[1] < pair[0]), "{losses:?}");
                }
            }
        }
    };
}

model!(dqn, 0.1, "dqn-ml-lib");
model!(ppo, 0.2, "ppo-lib");
model!(tft, 0.3, "tft-lib");
model!(mamba2, 0.4, "mamba2-lib");
model!(tggn, 0.5, "tggn-lib");
model!(tlob, 0.6, "tlob-lib");
model!(liquid, 0.7, "liquid-lib");
model!(kan, 0.8, "kan-lib");
model!(xlstm, 0.9, "xlstm-lib");
model!(diffusion, 1.0, "diffusion-lib");
