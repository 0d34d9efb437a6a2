//! Filters are never run: what they would say of LFS files is computed, of others it is unknown.

use super::{Fixture, paths};
use crate::git::index::Depth;

const POINTER: &str = "version https://git-lfs.github.com/spec/v1\n\
    oid sha256:6667b2d1aab6a00caa5aee5af8ad9f1465e567abf1c209d15727d57b3e8f6e5f\nsize 5\n";

fn with_attribute(attribute: &str, stored: &str) -> Fixture {
    let mut f = Fixture::new(&[(".gitattributes", &format!("*.bin {attribute}\n")), ("d.bin", stored)]);
    f.depth = Depth::BeforeRemoval;
    f
}

/// Replaces the file, so that its stat data are new whatever the content is.
fn replace(f: &Fixture, text: &str) {
    std::fs::remove_file(f.path("wt/d.bin")).unwrap();
    f.write("wt/d.bin", text);
}

#[test]
fn lfs_is_understood() {
    let f = with_attribute("filter=lfs diff=lfs merge=lfs -text", POINTER);
    f.walk().assert_clean();
    replace(&f, POINTER);
    f.walk().assert_clean();
    replace(&f, "data\n");
    f.walk().assert_clean();
    for other in ["Data\n", "data", "", "data\ndata\n"] {
        replace(&f, other);
        assert_eq!(paths(&f.walk().facts.modified), ["d.bin"], "{other:?}");
    }
}

#[test]
fn an_empty_lfs_file_is_its_own_pointer() {
    let f = with_attribute("filter=lfs", "");
    replace(&f, "");
    f.walk().assert_clean();
}

#[test]
fn what_a_filter_would_say_is_not_guessed() {
    for (attribute, stored) in
        [("filter=lfs", "data\n"), ("filter=crypt", "data\n"), ("filter=crypt", POINTER)]
    {
        let f = with_attribute(attribute, stored);
        replace(&f, stored);
        let seen = f.walk();
        assert_eq!(paths(&seen.facts.needs_filter), ["d.bin"], "{attribute}");
        assert!(seen.facts.modified.is_empty());
    }
}

#[test]
fn no_filter_of_any_config_is_run() {
    let f = with_attribute("filter=evil", "data\n");
    let mark = f.path("ran");
    for key in ["clean", "smudge", "process"] {
        f.git(&["config", &format!("filter.evil.{key}"), &format!("touch {}; cat", mark.display())]);
    }
    replace(&f, "other\n");
    assert_eq!(paths(&f.walk().facts.needs_filter), ["d.bin"]);
    assert!(!mark.exists());
}

#[test]
fn without_a_driver_name_there_is_no_filter() {
    for attribute in ["filter", "-filter", "!filter", "filter=x !filter"] {
        let f = with_attribute(attribute, "data\n");
        replace(&f, "data\n");
        f.walk().assert_clean();
    }
}
