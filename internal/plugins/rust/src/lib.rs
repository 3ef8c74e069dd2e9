//! The plug-in in Rust, written with Extism's kit.

use extism_pdk::*;

fn failure(text: String) -> WithReturnCode<Error> {
    WithReturnCode::new(Error::msg(text), 1)
}

#[plugin_fn]
pub fn echo(input: Vec<u8>) -> FnResult<Vec<u8>> {
    Ok(input)
}

#[plugin_fn]
pub fn reverse(input: String) -> FnResult<String> {
    Ok(input.chars().rev().collect())
}

#[plugin_fn]
pub fn count_vowels(input: Vec<u8>) -> FnResult<String> {
    let count = input.iter().filter(|b| b"aeiouAEIOU".contains(b)).count();
    Ok(format!("{{\"count\":{count}}}"))
}

static mut CALLS: u64 = 0; // in the memory of the instance

#[plugin_fn]
pub fn count_memory() -> FnResult<String> {
    // SAFETY: an instance has one thread.
    let calls = unsafe {
        CALLS += 1;
        CALLS
    };
    Ok(calls.to_string())
}

#[plugin_fn]
pub fn count_var() -> FnResult<String> {
    let before: String = var::get("calls")?.unwrap_or_else(|| "0".into());
    let calls = before.parse::<u64>()? + 1;
    var::set("calls", calls.to_string())?;
    Ok(calls.to_string())
}

#[plugin_fn]
pub fn config(key: String) -> FnResult<String> {
    config::get(&key)?.ok_or_else(|| failure(format!("no value for {key}")))
}

#[plugin_fn]
pub fn log_levels(message: String) -> FnResult<&'static str> {
    trace!("{message}");
    debug!("{message}");
    info!("{message}");
    warn!("{message}");
    error!("{message}");
    Ok("logged")
}

#[plugin_fn]
pub fn fail(message: String) -> FnResult<()> {
    Err(WithReturnCode::new(Error::msg(message), 7))
}

#[plugin_fn]
pub fn trap(message: String) -> FnResult<()> {
    panic!("{message}");
}

#[plugin_fn]
pub fn get(url: String) -> FnResult<String> {
    let response = http::request::<()>(&HttpRequest::new(url).with_method("GET"), None)?;
    Ok(format!("{} {}", response.status_code(), String::from_utf8_lossy(&response.body())))
}

/// Makes as many blocks in the host's memory as the input says, and frees every other one.
#[plugin_fn]
pub fn allocate(input: String) -> FnResult<String> {
    let blocks: u64 = input.parse().map_err(|_| failure("not a number".into()))?;
    let mut sum = 0;
    for i in 0..blocks {
        let mut written = vec![0; 1 + (i * 7919 % 1000) as usize];
        written[0] = i as u8;
        let block = Memory::from_bytes(&written)?;
        let found = Memory::find(block.offset()).map(|found| found.to_vec());
        if found.as_ref() != Some(&written) {
            return Err(failure(format!("block {i} is not what it should be")));
        }
        sum += written.len() + usize::from(written[0]);
        if i % 2 == 1 {
            block.free();
        }
    }
    Ok(sum.to_string())
}
