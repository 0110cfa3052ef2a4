//! A GPU through the driver's own library, loaded at run time: it builds without a CUDA toolkit and runs where a driver is.
//!
//! One kernel, as PTX text, which the driver compiles for the GPU that it finds.

use std::ffi::{c_char, c_int, c_uint, c_void, CStr, CString};
use std::ptr::null_mut;

extern "C" {
    fn dlopen(name: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}

const KERNEL: &CStr = c"
.version 7.0
.target sm_70
.address_size 64
.visible .entry axpy(.param .f32 a, .param .u64 x, .param .u64 y, .param .u32 n)
{
    .reg .pred %p<2>;
    .reg .b32 %r<6>;
    .reg .f32 %f<5>;
    .reg .b64 %rd<8>;
    ld.param.f32 %f1, [a];
    ld.param.u64 %rd1, [x];
    ld.param.u64 %rd2, [y];
    ld.param.u32 %r1, [n];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.s32 %r5, %r2, %r3, %r4;
    setp.ge.u32 %p1, %r5, %r1;
    @%p1 bra DONE;
    cvta.to.global.u64 %rd3, %rd1;
    cvta.to.global.u64 %rd4, %rd2;
    mul.wide.u32 %rd5, %r5, 4;
    add.s64 %rd6, %rd3, %rd5;
    add.s64 %rd7, %rd4, %rd5;
    ld.global.f32 %f2, [%rd6];
    ld.global.f32 %f3, [%rd7];
    fma.rn.f32 %f4, %f1, %f2, %f3;
    st.global.f32 [%rd7], %f4;
DONE:
    ret;
}
";
const BLOCK: c_uint = 256;
const CAPABILITY_MAJOR: c_int = 75;
const CAPABILITY_MINOR: c_int = 76;

/// Any function of the driver: they all return a status, and each call site knows its arguments.
struct Driver(*mut c_void);

impl Driver {
    fn load() -> Result<Driver, String> {
        // SAFETY: loads a library by its name.
        let library = unsafe { dlopen(c"libcuda.so.1".as_ptr(), 2) };
        if library.is_null() {
            Err("no libcuda.so.1 on this machine".to_string())
        } else {
            Ok(Driver(library))
        }
    }

    fn find(&self, name: &str) -> Result<*mut c_void, String> {
        let symbol = CString::new(name).map_err(|error| error.to_string())?;
        // SAFETY: the library is open and the name is a C string.
        let found = unsafe { dlsym(self.0, symbol.as_ptr()) };
        if found.is_null() {
            Err(format!("the driver has no {name}"))
        } else {
            Ok(found)
        }
    }
}

/// Calls a driver function by name; the types of the arguments make its signature, an error says which call it was.
macro_rules! call {
    ($driver:expr, $name:literal, $($argument:expr => $kind:ty),*) => {{
        let found = $driver.find($name)?;
        // SAFETY: the signature is the one of the driver API's header for this name.
        let function: extern "C" fn($($kind),*) -> c_int = unsafe { std::mem::transmute(found) };
        match function($($argument),*) {
            0 => Ok::<(), String>(()),
            code => Err(format!("{} failed with {code}", $name)),
        }
    }};
}

/// The first GPU, with a context of its own.
pub struct Gpu {
    driver: Driver,
    device: c_int,
    context: *mut c_void,
}

impl Gpu {
    pub fn open() -> Result<Gpu, String> {
        let driver = Driver::load()?;
        let (mut device, mut context) = (0, null_mut());
        call!(driver, "cuInit", 0 => c_uint)?;
        call!(driver, "cuDeviceGet", &mut device => *mut c_int, 0 => c_int)?;
        call!(driver, "cuCtxCreate_v2", &mut context => *mut *mut c_void, 0 => c_uint, device => c_int)?;
        Ok(Gpu { driver, device, context })
    }

    pub fn name(&self) -> Result<String, String> {
        let mut text = [0 as c_char; 256];
        call!(self.driver, "cuDeviceGetName", text.as_mut_ptr() => *mut c_char, 255 => c_int, self.device => c_int)?;
        // SAFETY: the driver wrote a terminated string into a buffer that was all zeros.
        Ok(unsafe { CStr::from_ptr(text.as_ptr()) }.to_string_lossy().into_owned())
    }

    /// As `CUDA_COMPUTE_CAP` has it: 90 for 9.0.
    pub fn capability(&self) -> Result<String, String> {
        let (mut major, mut minor) = (0, 0);
        for (value, attribute) in [(&mut major, CAPABILITY_MAJOR), (&mut minor, CAPABILITY_MINOR)] {
            call!(self.driver, "cuDeviceGetAttribute", value => *mut c_int, attribute => c_int, self.device => c_int)?;
        }
        Ok(format!("{major}{minor}"))
    }

    pub fn axpy(&self, a: f32, x: &[f32], y: &[f32]) -> Result<Vec<f32>, String> {
        let count = x.len().min(y.len());
        let (on_x, on_y) = (self.upload(&x[..count])?, self.upload(&y[..count])?);
        self.launch(a, on_x, on_y, count as c_uint)?;
        let mut out = vec![0.0f32; count];
        call!(self.driver, "cuMemcpyDtoH_v2", out.as_mut_ptr().cast() => *mut c_void, on_y => u64, 4 * count => usize)?;
        for pointer in [on_x, on_y] {
            call!(self.driver, "cuMemFree_v2", pointer => u64)?;
        }
        Ok(out)
    }

    fn upload(&self, values: &[f32]) -> Result<u64, String> {
        let (mut pointer, size) = (0, 4 * values.len());
        call!(self.driver, "cuMemAlloc_v2", &mut pointer => *mut u64, size => usize)?;
        call!(self.driver, "cuMemcpyHtoD_v2", pointer => u64, values.as_ptr().cast() => *const c_void, size => usize)?;
        Ok(pointer)
    }

    fn launch(&self, mut a: f32, mut x: u64, mut y: u64, mut count: c_uint) -> Result<(), String> {
        let (mut module, mut function) = (null_mut(), null_mut());
        let mut arguments: [*mut c_void; 4] =
            [(&raw mut a).cast(), (&raw mut x).cast(), (&raw mut y).cast(), (&raw mut count).cast()];
        call!(self.driver, "cuModuleLoadData", &mut module => *mut *mut c_void, KERNEL.as_ptr() => *const c_char)?;
        call!(self.driver, "cuModuleGetFunction",
            &mut function => *mut *mut c_void, module => *mut c_void, c"axpy".as_ptr() => *const c_char)?;
        call!(self.driver, "cuLaunchKernel", function => *mut c_void,
            count.div_ceil(BLOCK) => c_uint, 1 => c_uint, 1 => c_uint, BLOCK => c_uint, 1 => c_uint, 1 => c_uint,
            0 => c_uint, null_mut() => *mut c_void, arguments.as_mut_ptr() => *mut *mut c_void, null_mut() => *mut c_void)?;
        call!(self.driver, "cuCtxSynchronize",)?;
        call!(self.driver, "cuModuleUnload", module => *mut c_void)
    }
}

impl Drop for Gpu {
    fn drop(&mut self) {
        let closed: Result<(), String> = (|| call!(self.driver, "cuCtxDestroy_v2", self.context => *mut c_void))();
        if let Err(problem) = closed {
            eprintln!("{problem}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(not(cuda_driver), ignore = "no libcuda.so.1 on this machine")]
    fn the_gpu_is_what_the_run_was_told() {
        let gpu = Gpu::open().unwrap();
        println!("GPU {} with capability {}", gpu.name().unwrap(), gpu.capability().unwrap());

        if let Ok(wanted) = std::env::var("CUDA_COMPUTE_CAP") {
            assert_eq!(wanted, gpu.capability().unwrap());
        }
    }

    #[test]
    #[cfg_attr(not(cuda_driver), ignore = "no libcuda.so.1 on this machine")]
    fn a_million_elements_agree_with_the_cpu() {
        let x: Vec<f32> = (0..1_000_003).map(|number| number as f32 * 0.5).collect();
        let y: Vec<f32> = x.iter().map(|value| 1.0 - value).collect();
        let expected: Vec<f32> = x.iter().zip(&y).map(|(x, y)| 3.0f32.mul_add(*x, *y)).collect();

        assert_eq!(expected, Gpu::open().unwrap().axpy(3.0, &x, &y).unwrap());
    }

    #[test]
    #[cfg_attr(cuda_driver, ignore = "this machine has a driver")]
    fn without_a_driver_the_reason_is_said() {
        assert_eq!(Some("no libcuda.so.1 on this machine".to_string()), Gpu::open().err());
    }
}
