//! Which GPU the run has, as the driver's own tool says it.

use std::process::Command;
use std::time::Duration;

use crate::json::Value;
use crate::process;
use crate::terminal::shorten;

const LIMIT: Duration = Duration::from_secs(60);

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Gpu {
    pub name: String,
    pub driver: String,
    /// As `9.0`.
    pub compute_capability: String,
}

impl Gpu {
    /// Empty where there is no GPU or no tool: unknown is said to be unknown.
    pub fn detect() -> Gpu {
        let mut command = Command::new("nvidia-smi");
        command.args(["--query-gpu=name,driver_version,compute_cap", "--format=csv,noheader"]);
        process::output(&mut command, LIMIT).map(|text| Gpu::parse(&text)).unwrap_or_default()
    }

    fn parse(text: &str) -> Gpu {
        let columns: Vec<String> =
            text.lines().next().unwrap_or("").split(',').map(|column| shorten(column.trim(), 80)).collect();
        match columns[..] {
            [ref name, ref driver, ref capability] if capability.contains('.') => {
                Gpu { name: name.clone(), driver: driver.clone(), compute_capability: capability.clone() }
            }
            _ => Gpu::default(),
        }
    }

    /// Kernels for another capability would not load: better refused before minutes of GPU time are spent on compiling.
    pub fn check(&self, wanted: &str) -> Result<(), String> {
        let has = self.compute_capability.replace('.', "");
        if wanted.is_empty() || has.is_empty() || has == wanted {
            return Ok(());
        }
        Err(format!("cuda-compute-cap is {wanted}, but this node's {} has {}", self.name, self.compute_capability))
    }

    pub fn to_json(&self) -> Value {
        Value::object([
            ("name", Value::text(&self.name)),
            ("driver", Value::text(&self.driver)),
            ("compute_capability", Value::text(&self.compute_capability)),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_gpu_is_read() {
        let gpu = Gpu::parse("NVIDIA H100 PCIe, 570.86.15, 9.0\nNVIDIA H100 PCIe, 570.86.15, 9.0");

        assert_eq!(("NVIDIA H100 PCIe", "9.0"), (gpu.name.as_str(), gpu.compute_capability.as_str()));
    }

    #[test]
    fn an_error_text_is_no_gpu() {
        assert_eq!(Gpu::default(), Gpu::parse("NVIDIA-SMI has failed, because, it could not talk to the driver"));
    }

    #[test]
    fn another_capability_is_refused_and_an_unknown_one_is_not() {
        let gpu = Gpu::parse("NVIDIA L4, 570.86.15, 8.9");

        assert!(gpu.check("90").unwrap_err().contains("8.9"));
        assert_eq!(Ok(()), gpu.check("89"));
        assert_eq!(Ok(()), Gpu::default().check("90"));
    }
}
