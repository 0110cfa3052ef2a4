//! Finds out whether this machine has an NVIDIA driver, so that the tests that need one are ignored with a reason elsewhere.
//! Tests are compiled on the node that runs them, so the answer of the build is the answer of the run.

use std::ffi::{c_char, c_int, c_void};

extern "C" {
    fn dlopen(name: *const c_char, flags: c_int) -> *mut c_void;
}

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-check-cfg=cfg(cuda_driver)");
    // SAFETY: loads the driver library by its name; nothing is called in it.
    if !unsafe { dlopen(c"libcuda.so.1".as_ptr(), 1) }.is_null() {
        println!("cargo:rustc-cfg=cuda_driver");
    }
}
