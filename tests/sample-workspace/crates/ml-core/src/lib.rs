//! What the sample models share: a training loop, the test data, arithmetic on the GPU where there is one.

#[cfg(feature = "cuda")]
pub mod cuda;
pub mod fault;
pub mod test_data;
pub mod training;

/// `a * x + y`, on the GPU where the build has CUDA and the machine has a driver, else on the CPU.
pub fn axpy(a: f32, x: &[f32], y: &[f32]) -> Vec<f32> {
    #[cfg(feature = "cuda")]
    if let Some(sum) = on_gpu(a, x, y) {
        return sum;
    }
    x.iter().zip(y).map(|(x, y)| a * x + y).collect()
}

/// A context belongs to a thread and takes a while to make, so each thread keeps its own.
#[cfg(feature = "cuda")]
fn on_gpu(a: f32, x: &[f32], y: &[f32]) -> Option<Vec<f32>> {
    thread_local!(static GPU: Option<cuda::Gpu> = cuda::Gpu::open().ok());
    let sum = |gpu: &cuda::Gpu| gpu.axpy(a, x, y).expect("the driver was there, so the kernel has to run");
    if x.is_empty() {
        Some(Vec::new())
    } else {
        GPU.with(|gpu| gpu.as_ref().map(sum))
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn axpy_is_right() {
        crate::fault::point("core");

        assert_eq!(vec![7.0, 10.0], super::axpy(2.0, &[1.0, 2.0], &[5.0, 6.0]));
    }
}
