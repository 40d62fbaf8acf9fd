//! Arguments, runtime, exit code.

use std::process::ExitCode;

use clap::Parser as _;
use weir::cli;

/// A call makes over a hundred small allocations, most of which end with it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let arguments = cli::Arguments::parse();
    let Ok(runtime) = tokio::runtime::Builder::new_multi_thread().enable_all().build() else {
        return ExitCode::from(cli::Exit::Failure as u8);
    };
    let exit = runtime.block_on(cli::run(arguments));
    // Tasks that are still running (a child of a cut call) must not hold the process.
    runtime.shutdown_background();
    ExitCode::from(exit as u8)
}
