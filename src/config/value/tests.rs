use super::*;

fn seconds(text: &str) -> Result<u64, BadValue> {
    duration(text).map(|d| d.as_secs())
}

#[test]
fn durations_have_a_unit_and_never_a_sign() {
    for (text, expected) in [
        ("0", 0),
        ("0s", 0),
        ("30m", 1_800),
        ("1h", 3_600),
        ("7d", 604_800),
        ("2w", 1_209_600),
        ("1h30m", 5_400),
    ] {
        assert_eq!(seconds(text).unwrap(), expected, "{text}");
    }
    for text in ["", "1", "h", "-1h", "1h30", "1 h", "1y", "1.5h", "1H", "+1h", "1h-1m", "1ä"] {
        assert!(matches!(duration(text), Err(BadValue::Duration(_))), "{text}");
    }
    for text in ["99999999999999999999s", "18446744073709551615w", "40000d", "5300w"] {
        assert!(matches!(duration(text), Err(BadValue::TooLong(_))), "{text}");
    }
}

#[test]
fn a_template_fits_one_branch_of_a_name() {
    let fits = |template: &str, name: &str, branch: &str| {
        BranchTemplate::parse(template.as_bytes()).unwrap().matches(name.into(), branch.into())
    };
    assert!(fits("wt/{name}", "a", "wt/a"));
    assert!(fits("{name}", "a", "a"));
    assert!(fits("worktree-{name}", "a", "worktree-a"));
    assert!(fits("me/{name}/wip", "a", "me/a/wip"));
    assert!(!fits("wt/{name}", "a", "wt/ab"), "a prefix is not the name");
    assert!(!fits("wt/{name}", "a", "wt/a1"));
    assert!(!fits("wt/{name}", "a", "xwt/a"));
    assert!(!fits("wt/{name}", "", "wt/"));
    assert!(!fits("a{name}a", "x", "a"), "prefix and suffix may not overlap");
    let bytes = BranchTemplate::parse(b"\xff/{name}").unwrap();
    assert!(bytes.matches(b"n\xfe".into(), b"\xff/n\xfe".into()));
}

#[test]
fn a_template_has_the_name_once_and_makes_a_branch() {
    let parse = |t: &str| BranchTemplate::parse(t.as_bytes());
    assert!(matches!(parse("wt/x"), Err(BadValue::TemplateName(_))));
    assert!(matches!(parse("{name}/{name}"), Err(BadValue::TemplateName(_))));
    assert!(matches!(parse("{user}/{name}"), Err(BadValue::TemplatePlaceholder(_))));
    for text in [
        "/{name}",
        "{name}/",
        "a//{name}",
        "a b/{name}",
        "../{name}",
        "refs/heads/{name}",
        "a:{name}",
        "*{name}",
    ] {
        assert!(matches!(parse(text), Err(BadValue::TemplateBranch(_))), "{text}");
    }
    assert_eq!(parse("wt/{name}").unwrap().to_string(), "wt/{name}");
}

#[test]
fn a_template_can_be_read_off_a_branch() {
    let inferred = |name: &str, branch: &str| {
        BranchTemplate::inferred(name.into(), branch.into()).map(|t| t.to_string())
    };
    assert_eq!(inferred("fix", "me/fix").as_deref(), Some("me/{name}"));
    assert_eq!(inferred("fix", "fix/fix").as_deref(), Some("fix/{name}"));
    assert_eq!(inferred("fix", "feature"), None);
    assert_eq!(inferred("", "feature"), None);
}

#[test]
fn a_marker_lies_in_the_entry_and_is_not_gits() {
    assert_eq!(
        MarkerPath::parse("discern/worktree-ready").unwrap().as_path(),
        Path::new("discern/worktree-ready")
    );
    for text in ["", "/a", "a/", "a//b", "../a", "a/../b", "./a", "."] {
        assert!(matches!(MarkerPath::parse(text), Err(BadValue::MarkerPath(_))), "{text:?}");
    }
    for text in ["HEAD", "logs/HEAD", "gitdir", "index", "ORIG_HEAD", "MERGE_MSG", "refs/worktree/x"] {
        assert!(matches!(MarkerPath::parse(text), Err(BadValue::MarkerOfGit(_))), "{text:?}");
    }
}

#[test]
fn a_map_has_two_absolute_sides() {
    let parse = |t: &[u8]| PathMap::parse(OsStr::from_bytes(t), Some(Path::new("/home/me")));
    let map = parse(b"/workspaces/app/=/home/me/src=x").unwrap();
    assert_eq!(map.container, RecordedPath::new("/workspaces/app"));
    assert_eq!(map.host.as_bstr(), "/home/me/src=x", "only the first `=` splits");
    assert_eq!(parse(b"/w=~/src").unwrap().host.as_bstr(), "/home/me/src");
    assert_eq!(parse(b"/w\xff=/h\xfe").unwrap().host.as_bstr(), b"/h\xfe".as_bstr());
    assert_eq!(parse(br"C:\src\app\=/mnt/c/src/app").unwrap().container, RecordedPath::new(r"C:\src\app"));
    assert_eq!(
        parse(br"\\wsl.localhost\d\src=/src").unwrap().container,
        RecordedPath::new(r"\\wsl.localhost\d\src")
    );
    for text in ["workspaces=/h", "=/h", "/=/h", "/..=/h", "C:=/h", r"C:\=/h", r"src\app=/h", r"\\=/h"] {
        assert!(matches!(parse(text.as_bytes()), Err(BadValue::MapContainer(_))), "{text}");
    }
    assert!(matches!(parse(b"/workspaces/app"), Err(BadValue::MapForm(_))));
    assert!(matches!(parse(b"/w=src"), Err(BadValue::MapHost(_))));
    assert!(matches!(parse(b"/w="), Err(BadValue::MapHost(_))));
    assert!(matches!(parse(b"/w=~you/src"), Err(BadValue::OtherHome(_))));
}

#[test]
fn an_engine_is_local() {
    let parse = |t: &str| Engines::parse(OsStr::new(t));
    assert_eq!(parse("auto").unwrap(), Engines::Auto);
    assert_eq!(parse("none").unwrap(), Engines::None);
    assert_eq!(parse("/run/d.sock").unwrap(), Engines::Socket("/run/d.sock".into()));
    assert_eq!(parse("unix:///run/d.sock").unwrap(), Engines::Socket("/run/d.sock".into()));
    assert!(matches!(parse("tcp://10.0.0.1:2375"), Err(BadValue::RemoteEngine(_))));
    assert!(matches!(parse("ssh://host"), Err(BadValue::RemoteEngine(_))));
    assert!(matches!(parse("docker"), Err(BadValue::Engine(_))));
    assert!(matches!(parse(""), Err(BadValue::Engine(_))));
}

#[test]
fn only_ones_own_home_is_expanded() {
    let home = Some(Path::new("/home/me"));
    let expand = |t: &str| expand_home(OsStr::new(t), home);
    assert_eq!(expand("~").unwrap(), Path::new("/home/me"));
    assert_eq!(expand("~/src").unwrap(), Path::new("/home/me/src"));
    assert_eq!(expand("/a/~").unwrap(), Path::new("/a/~"));
    assert!(matches!(expand("~you"), Err(BadValue::OtherHome(_))));
    assert!(matches!(expand_home(OsStr::new("~"), None), Err(BadValue::NoHome(_))));
}

#[test]
fn jobs_are_a_small_number() {
    assert_eq!(jobs("4").unwrap().get(), 4);
    for text in ["0", "-1", "257", "x", ""] {
        assert!(jobs(text).is_err(), "{text}");
    }
}
