use super::*;
use crate::git::testing::{Repo, made};

/// A hostile value for each key that is overridden.
const HOSTILE: [(&str, &str, bool); 9] = [
    ("core.useReplaceRefs", "true", false),
    ("core.commitGraph", "true", false),
    ("core.multiPackIndex", "true", false),
    ("core.trustCtime", "false", true),
    ("core.fileMode", "false", true),
    ("core.ignoreCase", "true", false),
    ("core.symlinks", "false", true),
    ("core.precomposeUnicode", "true", false),
    ("core.untrackedCache", "true", false),
];

#[test]
fn what_we_do_not_understand_is_refused() {
    for (key, value, readable) in [
        ("extensions.worktreeConfig", "true", true),
        ("extensions.relativeWorktrees", "true", true),
        ("extensions.partialClone", "origin", true),
        ("extensions.preciousObjects", "true", true),
        ("extensions.noop", "1", true),
        ("extensions.refStorage", "files", true),
        ("extensions.refStorage", "reftable", false),
        ("extensions.somethingNew", "1", false),
        ("EXTENSIONS.SomethingNew", "1", false),
    ] {
        let repo = Repo::new();
        repo.git(&["config", "core.repositoryformatversion", "1"]);
        repo.git(&["config", key, value]);
        let opened = open_clone(&repo.common());
        assert_eq!(opened.is_ok(), readable, "{key}={value}: {:?}", opened.err());
    }
}

#[test]
fn what_is_no_plain_file_does_not_hold_us() {
    for name in ["packed-refs", "shallow", "info/exclude", "info/grafts", "objects/info/alternates", "config"]
    {
        let repo = Repo::new();
        let path = repo.git_dir().join(name);
        let _ = std::fs::remove_file(&path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let error = open_clone(&repo.common()).unwrap_err();
        assert!(error.0.contains(name) && error.0.contains("FIFO"), "{error}");
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", &path).unwrap();
        let error = open_clone(&repo.common()).unwrap_err();
        assert!(error.0.contains(name), "{error}");
    }
    let repo = Repo::new();
    let huge = std::fs::File::create(repo.git_dir().join("packed-refs")).unwrap();
    huge.set_len(1 << 40).unwrap();
    assert!(open_clone(&repo.common()).unwrap_err().0.contains("packed-refs"));
}

#[test]
fn the_clones_own_configuration_changes_nothing_that_was_overridden() {
    for by_worktree in [false, true] {
        let repo = Repo::new();
        repo.commit("one");
        repo.worktree("wt");
        if by_worktree {
            repo.git(&["config", "extensions.worktreeConfig", "true"]);
        }
        for (key, value, _) in HOSTILE {
            let scope: &[&str] = if by_worktree { &["config", "--worktree"] } else { &["config"] };
            repo.git_in(&repo.root().join("wt"), &[scope, &[key, value]].concat());
        }
        repo.git_in(&repo.root().join("wt"), &["config", "core.checkStat", "minimal"]);
        for opened in [repo.open(), open_entry(&repo.common(), &repo.entry("wt")).unwrap()] {
            let config = opened.config_snapshot();
            for (key, _, ours) in HOSTILE {
                assert_eq!(config.boolean(key), Some(ours), "{key}");
            }
            assert_eq!(config.string("core.checkStat").unwrap().to_string(), "default");
            assert!(!opened.refs.precompose_unicode);
            assert!(opened.commit_graph_if_enabled().unwrap().is_none());
        }
    }
    for key in OVERRIDES.map(|o| o.split('=').next().unwrap()) {
        let tried = HOSTILE.iter().any(|(tried, ..)| *tried == key);
        assert!(tried || ["core.checkStat", "core.fsmonitor"].contains(&key), "{key}");
    }
}

#[test]
fn a_replaced_commit_is_read_as_it_is() {
    let repo = Repo::new();
    let ids = repo.history(&[made("a", &[], 1), made("b", &[], 2), made("forged", &["b"], 3)]);
    repo.set("refs/heads/main", ids["a"]);
    repo.git(&["replace", &ids["a"].to_string(), &ids["forged"].to_string()]);
    // That is what git is told.
    assert_eq!(repo.git(&["rev-list", "--count", "main"]), "2");
    let parents = |repo: &gix::Repository| repo.find_commit(ids["a"]).unwrap().parent_ids().count();
    let believing = gix::open_opts(repo.git_dir(), gix::open::Options::isolated()).unwrap();
    assert_eq!(parents(&believing), 1, "gix believes it too if it is not told otherwise");
    assert_eq!(parents(&repo.open()), 0);
}

#[test]
fn another_repository_can_not_answer_for_the_clone() {
    let (repo, other) = (Repo::new(), Repo::new());
    repo.commit("one");
    let theirs = other.commit("theirs");
    repo.worktree("wt");
    // The clone's own directory is not part of another one, whatever a file in it says.
    let file = repo.git_dir().join("commondir");
    for text in [other.git_dir().to_str().unwrap(), ".", ""] {
        std::fs::write(&file, text).unwrap();
        assert!(open_clone(&repo.common()).unwrap_err().0.contains("commondir"));
        assert!(open_entry(&repo.common(), &repo.entry("wt")).is_err());
    }
    std::fs::remove_file(&file).unwrap();
    // An entry that leads elsewhere is not opened as one of this clone.
    let commondir = repo.git_dir().join("worktrees/wt/commondir");
    std::fs::write(&commondir, other.git_dir().to_str().unwrap()).unwrap();
    let error = open_entry(&repo.common(), &repo.entry("wt")).unwrap_err();
    assert!(error.0.contains("led to"), "{error}");
    std::fs::write(commondir, "../..\n").unwrap();
    assert!(open_entry(&repo.common(), &repo.entry("wt")).unwrap().find_object(theirs).is_err());
}

#[test]
fn a_name_in_another_unicode_form_is_another_clone() {
    let repo = Repo::new();
    repo.git(&["config", "core.precomposeUnicode", "true"]);
    let (decomposed, composed) = (repo.root().join("cafe\u{301}"), repo.root().join("caf\u{e9}"));
    for path in [&decomposed, &composed] {
        let from = repo.path();
        assert!(std::process::Command::new("cp").arg("-a").arg(from).arg(path).status().unwrap().success());
    }
    let open = |path: &Path| open_clone(&crate::git::testing::held(&path.join(".git")));
    assert!(open(&decomposed).unwrap_err().0.contains("led to"));
    assert!(open(&composed).is_ok());
}

#[test]
fn nothing_of_the_environment_or_of_includes_is_read() {
    let repo = Repo::new();
    let elsewhere = repo.root().join("more");
    std::fs::write(&elsewhere, "[some]\n\tkey = included\n").unwrap();
    repo.git(&["config", "include.path", elsewhere.to_str().unwrap()]);
    repo.git(&["config", "safe.directory", "*"]);
    let opened = repo.open();
    assert!(opened.config_snapshot().string("some.key").is_none());
    assert_eq!(opened.git_dir_trust(), gix::sec::Trust::Reduced);
}

#[test]
fn a_missing_object_of_a_partial_clone_is_not_fetched() {
    let repo = Repo::new();
    let ids = repo.history(&[made("a", &[], 1), made("b", &["a"], 2)]);
    let marker = repo.root().join("FETCHED");
    let fetch = format!("ext::touch {}", marker.display());
    for (key, value) in [
        ("core.repositoryFormatVersion", "1"),
        ("extensions.partialClone", "origin"),
        ("remote.origin.url", fetch.as_str()),
        ("remote.origin.promisor", "true"),
        ("remote.origin.partialCloneFilter", "tree:0"),
        ("protocol.ext.allow", "always"),
    ] {
        repo.git(&["config", key, value]);
    }
    let hex = ids["a"].to_string();
    std::fs::remove_file(repo.git_dir().join("objects").join(&hex[..2]).join(&hex[2..])).unwrap();
    assert!(repo.open().find_object(ids["a"]).is_err());
    assert!(!marker.exists());
    repo.try_git(&["cat-file", "-p", &hex]);
    assert!(marker.exists(), "git would have fetched it");
}
