//! Bringing a dev container up, with the dev container CLI in the place of this process.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The dev container CLI's program.
pub const CLI: &str = "devcontainer";

/// Where the dev container CLI is; looked for in `PATH`.
pub fn find() -> Option<PathBuf> {
    which::which(CLI).ok()
}

/// Becomes `devcontainer up`, started in `cwd`: from here on output, signals and exit code are its own.
///
/// To be called by a thread that never swept: what confines a thread would confine the CLI, and all that it starts.
pub fn become_devcontainer_up(cli: &Path, folder: &Path, arguments: &[OsString], cwd: &Path) -> io::Error {
    let mut command = Command::new(cli);
    command.arg("up").arg("--workspace-folder").arg(folder).args(arguments);
    command.current_dir(cwd).exec()
}
