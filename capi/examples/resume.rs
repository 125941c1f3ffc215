//! Loads two epochs of some Arrow files from Rust, stops in the middle, and continues there.
//!
//! The declarations below are the part of meshfeed.h that this program uses. Structs have the
//! layout of C. Numbers, handles and pointers are passed as the header declares them.

use std::ffi::{c_char, c_void, CStr, CString};
use std::{error, fmt, ptr, slice};

#[repr(C)]
#[derive(Clone, Copy)]
struct Handle(u64); // mf_dataset, mf_layout or mf_loader

#[repr(C)]
struct MfError {
    struct_size: u32,
    code: i32,
    op: [c_char; 64],
    message: [c_char; 1024],
    hint: [c_char; 512],
    path: [c_char; 256],
}

#[repr(C)]
struct LoaderOptions {
    struct_size: u32,
    flags: u32,
    process: i64,
    processes: i64,
    order: *const c_char,
    seed: i64,
    epochs: i64,
    prefetch: i64,
    state: *const c_char,
    fill: *const c_void,
    n_fill: i64,
    max_host_bytes: i64,
    workers: i64,
}

#[repr(C)]
struct MfBatch {
    struct_size: u32,
    tensors: i32,
    data: *mut c_void,
    bytes: i64,
    epoch: i64,
    step: i64,
    position: i64,
    rows: i64,
    next_epoch: i64,
    next_position: i64,
    state: *const c_char,
    state_size: i64,
}

#[repr(C)]
struct Tensor {
    struct_size: u32,
    array: i32,
    name: *const c_char,
    data: *const c_void,
    bytes: i64,
    dtype: [u8; 4],
    ndim: i32,
    shape: *const i64,
    start: *const i64,
    global_shape: *const i64,
    holders: *const i64,
    n_holders: i64,
}

#[link(name = "meshfeed")]
extern "C" {
    fn mf_dataset_open(paths: *const *const c_char, n: i32, options: *const c_void, out: *mut Handle, error: *mut MfError) -> i32;
    fn mf_layout_create(json: *const c_char, size: usize, out: *mut Handle, error: *mut MfError) -> i32;
    fn mf_loader_create(dataset: Handle, layout: Handle, options: *const LoaderOptions, out: *mut Handle, error: *mut MfError) -> i32;
    fn mf_loader_next(loader: Handle, timeout_ms: i64, batch: *mut *mut MfBatch, error: *mut MfError) -> i32;
    fn mf_batch_tensor(batch: *const MfBatch, i: i32, tensor: *mut Tensor) -> i32;
    fn mf_batch_release(batch: *mut MfBatch);
    fn mf_release(id: u64, error: *mut MfError) -> i32;
}

/// An error of the library: op, message and hint.
#[derive(Debug)]
struct Error(String);

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl error::Error for Error {}

/// Makes one call of the library, and turns a negative status into an Error.
fn call(function: impl FnOnce(*mut MfError) -> i32) -> Result<i32, Error> {
    let mut error: MfError = unsafe { std::mem::zeroed() };
    error.struct_size = std::mem::size_of::<MfError>() as u32;
    let status = function(&mut error);
    let text = |part: &[c_char]| unsafe { CStr::from_ptr(part.as_ptr()) }.to_string_lossy().into_owned();
    match status {
        0.. => Ok(status),
        _ => Err(Error(format!("{}: {}; {}", text(&error.op), text(&error.message), text(&error.hint)))),
    }
}

/// Owns a handle.
struct Owned(Handle);

impl Owned {
    fn new(make: impl FnOnce(*mut Handle, *mut MfError) -> i32) -> Result<Owned, Error> {
        let mut handle = Handle(0);
        call(|error| make(&mut handle, error)).map(|_| Owned(handle))
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        unsafe { mf_release(self.0 .0, ptr::null_mut()) };
    }
}

/// Owns a reference to a batch. Its blocks live as long as this value.
struct Batch(*mut MfBatch);

impl Batch {
    fn facts(&self) -> &MfBatch {
        unsafe { &*self.0 }
    }

    /// The state of the loader after this batch: JSON, at most 256 bytes.
    fn state(&self) -> CString {
        unsafe { CStr::from_ptr(self.facts().state) }.to_owned()
    }

    /// The int32 elements of block i, in C order.
    fn labels(&self, i: i32) -> &[i32] {
        let mut tensor: Tensor = unsafe { std::mem::zeroed() };
        tensor.struct_size = std::mem::size_of::<Tensor>() as u32;
        unsafe { mf_batch_tensor(self.0, i, &mut tensor) };
        assert_eq!(tensor.dtype, [0, 32, 1, 0], "DLPack's type of int32");
        unsafe { slice::from_raw_parts(tensor.data.cast(), tensor.bytes as usize / 4) }
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        unsafe { mf_batch_release(self.0) };
    }
}

/// The batches of one process, in order. The iterator ends with the last epoch.
struct Loader(Owned);

impl Loader {
    /// Starts two shuffled epochs, at the first record or at a saved state.
    fn new(dataset: &Owned, layout: &Owned, state: Option<&CStr>) -> Result<Loader, Error> {
        let mut options: LoaderOptions = unsafe { std::mem::zeroed() }; // zeros are the defaults
        let order = CString::new("shuffle.1").unwrap();
        options.struct_size = std::mem::size_of::<LoaderOptions>() as u32;
        options.order = order.as_ptr();
        options.seed = 7;
        options.epochs = 2;
        options.state = state.map_or(ptr::null(), CStr::as_ptr);
        Owned::new(|out, error| unsafe { mf_loader_create(dataset.0, layout.0, &options, out, error) }).map(Loader)
    }
}

impl Iterator for Loader {
    type Item = Result<Batch, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut batch = ptr::null_mut();
        match call(|error| unsafe { mf_loader_next(self.0 .0, -1, &mut batch, error) }) {
            Err(error) => Some(Err(error)),
            Ok(_) if batch.is_null() => None, // MF_END
            Ok(_) => Some(Ok(Batch(batch))),
        }
    }
}

/// A layout of four devices in one process, which divide each batch of 32 labels.
const LAYOUT: &str = r#"{"meshfeed": 1, "mesh": {"axes": [["data", 4]]}, "batch": {"size": 32},
  "arrays": {"label": {"shape": ["B"], "dtype": "int32", "spec": ["data"]}}}"#;

fn main() -> Result<(), Box<dyn error::Error>> {
    let files = CString::new("train-*.arrow")?;
    let paths = [files.as_ptr()];
    let dataset = Owned::new(|out, error| unsafe { mf_dataset_open(paths.as_ptr(), 1, ptr::null(), out, error) })?;
    let layout = Owned::new(|out, error| unsafe { mf_layout_create(LAYOUT.as_ptr().cast(), LAYOUT.len(), out, error) })?;

    let mut saved = None;
    for batch in Loader::new(&dataset, &layout, None)?.take(20) {
        saved = Some(batch?.state());
    }
    println!("saved {}", saved.as_ref().unwrap().to_str()?);

    let (mut batches, mut sum) = (0, 0);
    for batch in Loader::new(&dataset, &layout, saved.as_deref())? {
        let batch = batch?;
        if batches == 0 {
            println!("continues at step {} of epoch {}", batch.facts().step, batch.facts().epoch);
        }
        sum += (0..batch.facts().tensors).flat_map(|i| batch.labels(i)).map(|&label| label as i64).sum::<i64>();
        batches += 1;
    }
    println!("{batches} more batches, sum of labels {sum}");
    Ok(())
}
