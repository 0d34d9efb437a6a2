//! Directories that tools fill and can fill again, known by name.

/// One kind of directory that a tool recreates from files that git tracks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Disposable {
    /// The directory's name, exactly.
    pub name: &'static str,
    /// Which tool makes it, for a person.
    pub made_by: &'static str,
}

/// Every name that counts, in the order of their bytes. A name alone proves nothing: callers ask this of *ignored*
/// directories only. Names under which people also keep things of their own (`build`, `dist`, `out`, `vendor`,
/// `.cache`, `tmp`) are left out on purpose: what is in them is looked at file by file.
const TABLE: &[Disposable] = &[
    Disposable { name: ".angular", made_by: "Angular" },
    Disposable { name: ".dart_tool", made_by: "Dart" },
    Disposable { name: ".eggs", made_by: "setuptools" },
    Disposable { name: ".gradle", made_by: "Gradle" },
    Disposable { name: ".mypy_cache", made_by: "mypy" },
    Disposable { name: ".next", made_by: "Next.js" },
    Disposable { name: ".nox", made_by: "nox" },
    Disposable { name: ".nuxt", made_by: "Nuxt" },
    Disposable { name: ".parcel-cache", made_by: "Parcel" },
    Disposable { name: ".pnpm-store", made_by: "pnpm" },
    Disposable { name: ".pytest_cache", made_by: "pytest" },
    Disposable { name: ".ruff_cache", made_by: "ruff" },
    Disposable { name: ".stack-work", made_by: "Stack" },
    Disposable { name: ".svelte-kit", made_by: "SvelteKit" },
    Disposable { name: ".tox", made_by: "tox" },
    Disposable { name: ".turbo", made_by: "Turborepo" },
    Disposable { name: ".venv", made_by: "Python" },
    Disposable { name: ".zig-cache", made_by: "Zig" },
    Disposable { name: "Pods", made_by: "CocoaPods" },
    Disposable { name: "__pycache__", made_by: "Python" },
    Disposable { name: "bower_components", made_by: "Bower" },
    Disposable { name: "dist-newstyle", made_by: "Cabal" },
    Disposable { name: "elm-stuff", made_by: "Elm" },
    Disposable { name: "node_modules", made_by: "npm, pnpm or Yarn" },
    Disposable { name: "target", made_by: "Cargo, Maven or sbt" },
    Disposable { name: "venv", made_by: "Python" },
];

/// What a directory of this name is, if it is in the table.
pub fn by_name(name: &[u8]) -> Option<&'static Disposable> {
    TABLE.binary_search_by(|d| d.name.as_bytes().cmp(name)).ok().map(|at| &TABLE[at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_can_be_searched() {
        assert!(TABLE.is_sorted_by(|a, b| a.name < b.name));
        assert_eq!(by_name(b"node_modules").unwrap().name, "node_modules");
        assert_eq!(by_name(b"build"), None);
        assert_eq!(by_name(b"Target"), None);
    }
}
