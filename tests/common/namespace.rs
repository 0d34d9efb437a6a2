//! Tests that mount: each in a mount namespace of its own, with which its mounts end.

use std::process::Command;

use super::env::is_root;

/// Runs the ignored test `name` of this binary in a mount namespace of its own.
pub fn in_namespace(name: &str) {
    if !is_root() {
        return eprintln!("SKIPPED: needs root, to mount");
    }
    let output = Command::new("unshare")
        .args(["--mount", "--propagation", "private"])
        .arg(std::env::current_exe().expect("this binary"))
        .args(["--exact", "--ignored", "--nocapture", name])
        .output()
        .expect("unshare starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let ran = output.status.success() && text.contains("1 passed");
    assert!(ran, "{text}{}", String::from_utf8_lossy(&output.stderr));
    // That something was skipped is said.
    text.lines().filter(|line| line.contains("SKIPPED")).for_each(|line| eprintln!("{line}"));
}

/// `mount`, which must succeed.
pub fn mount(args: &[&str]) {
    let output = Command::new("mount").args(args).output().expect("mount starts");
    assert!(output.status.success(), "mount {args:?}: {}", String::from_utf8_lossy(&output.stderr));
}
