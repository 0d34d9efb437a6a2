//! The mount table of a container's process.

use bstr::{BStr, ByteSlice};

use crate::vantage::mountinfo::{Mount, MountTable};
use crate::vantage::paths::LocalPath;

/// `mountinfo`: every line is a mount, each is read back from how the kernel spells it, and a walk over them ends.
pub fn mountinfo(bytes: &[u8]) {
    let Ok(table) = MountTable::parse(bytes) else { return };
    let lines = bytes.split_str("\n").filter(|line| !line.is_empty()).count();
    assert_eq!(table.iter().count(), lines, "a mount was passed over");
    let spelled: Vec<u8> = table.iter().flat_map(spell).collect();
    let again = MountTable::parse(&spelled).expect("the kernel's own spelling");
    assert!(table.iter().eq(again.iter()));
    for mount in table.iter().take(64) {
        let Some(path) = LocalPath::new(mount.mount_point.to_path_lossy()) else { continue };
        for path in [path.join(b"x/y"), Some(path)].into_iter().flatten() {
            let Some(deepest) = table.deepest_over(&path) else { continue };
            let point = deepest.mount_point.to_path_lossy();
            assert!(path.as_path().starts_with(&point), "{path:?} is not below {point:?}");
            let place = table.fs_place(&path).expect("a mount is over it");
            assert!(place.is_beneath_or_at(&deepest.source_place()), "{place:?} is not in {deepest:?}");
        }
    }
}

/// As `show_mountinfo` of the kernel writes it.
fn spell(mount: &Mount) -> Vec<u8> {
    let numbers = format!(
        "{} {} {}:{} ",
        mount.id,
        mount.parent,
        rustix::fs::major(mount.device),
        rustix::fs::minor(mount.device)
    );
    let mut line = numbers.into_bytes();
    let escaped = |text: &BStr| -> Vec<u8> {
        let spell = |byte: &u8| match byte {
            b' ' | b'\t' | b'\n' | b'\\' | b'#' => format!("\\{byte:03o}").into_bytes(),
            _ => vec![*byte],
        };
        text.iter().flat_map(spell).collect()
    };
    line.extend(escaped(mount.root.as_bstr()));
    line.push(b' ');
    line.extend(escaped(mount.mount_point.as_bstr()));
    line.extend(if mount.read_only { &b" ro shared:1 - "[..] } else { &b" rw - "[..] });
    line.extend(escaped(mount.fs_type.as_bstr()));
    line.push(b' ');
    line.extend(escaped(mount.source.as_bstr()));
    line.push(b' ');
    line.extend(escaped(mount.super_options.as_bstr()));
    line.push(b'\n');
    line
}
