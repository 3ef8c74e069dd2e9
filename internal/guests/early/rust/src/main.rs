//! Early is a guest that does something before it reads its input, so that tests can see
//! whether a call gets to know what another one did there. Its argument says what; an
//! argument that says nothing of that is told as it is.

use std::collections::hash_map::RandomState;
use std::error::Error;
use std::hash::BuildHasher;
use std::io::{Read, Write};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{env, fs, io, process, thread};

const TENANT: &str = "/project/tenant.txt";

fn list() -> io::Result<String> {
    let mut text = String::new();
    for entry in fs::read_dir("/project")? {
        text += &entry?.file_name().to_string_lossy();
        text.push(';');
    }
    Ok(text)
}

fn print() -> io::Result<()> {
    let mut output = io::stdout();
    output.write_all(b"early ")?;
    output.flush()
}

fn clock() -> Result<String, Box<dyn Error>> {
    Ok(SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos().to_string())
}

/// Returns what came of doing what the argument says.
fn before(what: String) -> Result<String, Box<dyn Error>> {
    Ok(match what.as_str() {
        "file" => fs::read_to_string(TENANT)?,
        "stat" => fs::metadata(TENANT)?.len().to_string(),
        "list" => list()?,
        "log" => {
            io::stderr().write_all(b"starting\n")?;
            "written".into()
        }
        "print" => {
            print()?;
            "written".into()
        }
        "environment" => env::var("SETTING")?,
        "clock" => clock()?,
        // Each process draws the keys of its hash maps.
        "random" => format!("{:016x}", RandomState::new().hash_one(0)),
        "sleep" => {
            thread::sleep(Duration::from_millis(1));
            clock()?
        }
        "exit" => process::exit(0),
        _ => what,
    })
}

fn main() -> Result<(), Box<dyn Error>> {
    let what = env::args().nth(1).ok_or("no argument")?;
    let text = before(what).unwrap_or_else(|error| error.to_string());
    let mut input = String::new();
    io::stdin().read_to_string(&mut input)?;
    print!("{text} {input}");
    Ok(())
}
