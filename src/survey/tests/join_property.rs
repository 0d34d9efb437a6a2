//! The join of generated scenes: the order of things does not matter, and more evidence never joins more.

use std::collections::BTreeMap;

use proptest::prelude::*;

use crate::judge::facts::Placement;
use crate::survey::discover::Sighting;
use crate::survey::ground::Ground;
use crate::survey::join::{JoinSide, join};
use crate::survey::testing::{Scene, Surveyed};
use crate::vantage::translate::Translator;

const CLONES: [&str; 4] = ["app", "app-b", "two/app", "app/.worktrees/x/lib"];
const NAMES: [&str; 2] = ["x", "y"];
const PLACES: [&str; 6] =
    ["app/.worktrees/x", "app-b/.worktrees/x", "two/app/y", "x", "two/x", "x/.worktrees/y"];
const CALLED: [&str; 3] = ["@", "/workspaces", "/work"];

/// Who is called how and lies where, by numbers into the lists above.
#[derive(Clone, Debug)]
struct Sketch {
    /// Clone, name, place, called.
    entries: Vec<(usize, usize, usize, usize)>,
    /// Place, clone, name, called.
    checkouts: Vec<(usize, usize, usize, usize)>,
    container: Option<usize>,
    map: bool,
}

fn sketch() -> impl Strategy<Value = Sketch> {
    let entry = (0..CLONES.len(), 0..NAMES.len(), 0..PLACES.len(), 0..CALLED.len());
    let checkout = (0..PLACES.len(), 0..CLONES.len(), 0..NAMES.len(), 0..CALLED.len());
    let entries = prop::collection::vec(entry, 1..7);
    let checkouts = prop::collection::vec(checkout, 1..7);
    (entries, checkouts, prop::option::of(0..CLONES.len()), any::<bool>())
        .prop_map(|(entries, checkouts, container, map)| Sketch { entries, checkouts, container, map })
}

/// What a container calls a path below `src`: the clone `app-b` was `app` in it.
fn called(by: usize, path: &str) -> String {
    let path = match (by, path.strip_prefix("app-b")) {
        (1.., Some(rest)) => format!("app{rest}"),
        _ => path.to_owned(),
    };
    format!("{}/{path}", CALLED[by])
}

fn build(sketch: &Sketch, clones: &[&str]) -> Scene {
    let scene = Scene::new();
    for clone in clones {
        scene.clone(clone);
    }
    for &(clone, name, place, by) in &sketch.entries {
        if clones.contains(&CLONES[clone]) {
            scene.entry(&format!("{}/.git", CLONES[clone]), NAMES[name], &called(by, PLACES[place]));
        }
    }
    for &(place, clone, name, by) in &sketch.checkouts {
        let entry = format!("{}/.git/worktrees/{}", CLONES[clone], NAMES[name]);
        scene.checkout(PLACES[place], &called(by, &entry));
    }
    scene
}

fn survey(scene: &Scene, sketch: &Sketch) -> Surveyed {
    scene.survey(|site| {
        let mut rules: Vec<Translator> = Vec::new();
        if let Some(clone) = sketch.container
            && site.dir == scene.local(CLONES[clone])
        {
            rules.push(scene.container("dev", &[("/workspaces/app", &format!("@{}", CLONES[clone]))]));
        }
        if sketch.map {
            rules.push(scene.map("/work", ""));
        }
        rules
    })
}

/// What became of each registration and of each checkout that is not joined, by paths and names.
type Outcome = BTreeMap<String, String>;

fn outcome(ground: &Ground<'_>) -> Outcome {
    let mut all = Outcome::new();
    for (c, side) in ground.sides.iter().enumerate() {
        for (r, registration) in side.registrations.iter().enumerate() {
            let key = format!("{} {}", side.site.dir, registration.name);
            let placement = match ground.place(c, r) {
                // Which of several texts of one kind is shown is not what matters.
                Placement::Held { path, reasons, .. } => {
                    format!("{path:?} {:?}", reasons.iter().map(|r| r.code).collect::<Vec<_>>())
                }
                other => format!("{other:?}"),
            };
            all.insert(key, placement);
        }
    }
    for (w, c) in ground.strays() {
        let why = ground.is_orphan(*w).map_err(|reason| reason.code);
        let text = format!("stray of {}: {why:?}", ground.sides[*c].site.dir);
        all.insert(ground.checkouts[*w].path.to_string(), text);
    }
    all
}

fn shuffled<T: Clone>(all: &[T], seed: u64) -> Vec<T> {
    let mut all: Vec<T> = all.to_vec();
    let mut state = seed | 1;
    for at in (1..all.len()).rev() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        all.swap(at, (state >> 33) as usize % (at + 1));
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn the_order_of_things_does_not_matter(sketch in sketch(), seed in any::<u64>()) {
        let scene = build(&sketch, &CLONES);
        let seen = survey(&scene, &sketch);
        let expected = seen.with(outcome);
        let sides = seen.0.sides();
        let registrations: Vec<_> =
            sides.iter().map(|side| shuffled(side.registrations, seed)).collect();
        let numbers: Vec<usize> = shuffled(&(0..sides.len()).collect::<Vec<_>>(), seed);
        let sides: Vec<JoinSide<'_>> = numbers
            .iter()
            .map(|at| JoinSide {
                site: sides[*at].site,
                registrations: &registrations[*at],
                unread: None,
                translators: sides[*at].translators,
                infers: true,
            })
            .collect();
        let checkouts: Vec<Sighting> = shuffled(&seen.0.field.checkouts, seed);
        let joins = join(&sides, &checkouts);
        let ground = Ground::new(&seen.0.roots, &sides, &checkouts, &joins, &[]);
        prop_assert_eq!(outcome(&ground), expected);
    }

    #[test]
    fn a_pair_is_joined_once_and_names_each_other(sketch in sketch()) {
        let scene = build(&sketch, &CLONES);
        survey(&scene, &sketch).with(|ground| {
            let mut checkouts = std::collections::HashSet::new();
            for ((c, r), pair) in &ground.joins.joined {
                let (_, name) = ground.checkouts[pair.checkout].pointer.entry.as_ref().unwrap();
                assert_eq!(*name, ground.sides[*c].registrations[*r].name);
                assert!(checkouts.insert(pair.checkout), "{:?} twice", ground.checkouts[pair.checkout]);
                assert!(!ground.joins.ambiguous.contains_key(&(*c, *r)));
                assert!(!ground.joins.ambiguous_checkouts.contains_key(&pair.checkout));
            }
        });
    }

    /// The one rule that can be said again in a line: both paths are what they say.
    #[test]
    fn without_a_translation_the_paths_themselves_have_to_agree(sketch in sketch()) {
        let scene = build(&sketch, &CLONES);
        let seen = scene.survey_in(&[scene.root("")], false, |_| Vec::new());
        seen.with(|ground| {
            for (c, side) in ground.sides.iter().enumerate() {
                for (r, registration) in side.registrations.iter().enumerate() {
                    let entry = format!("{}/worktrees/{}", side.site.common_path(), registration.name);
                    let recorded = registration.recorded.as_ref().unwrap().to_string();
                    let agree = ground.checkouts.iter().any(|w| {
                        w.path.to_string() == recorded && w.pointer.target.to_string() == entry
                    });
                    assert_eq!(ground.joins.joined.contains_key(&(c, r)), agree);
                }
            }
        });
    }

    #[test]
    fn one_more_clone_joins_no_more(sketch in sketch(), without in 0..CLONES.len()) {
        let fewer: Vec<&str> =
            CLONES.iter().enumerate().filter(|(at, _)| *at != without).map(|(_, clone)| *clone).collect();
        let joined = |clones: &[&str]| {
            let scene = build(&sketch, clones);
            survey(&scene, &sketch).with(|ground| {
                let below = |path: &crate::vantage::paths::LocalPath| {
                    path.below(&scene.local("")).unwrap().to_string()
                };
                let joined = ground.joins.joined.iter().map(|((c, r), pair)| {
                    let side = &ground.sides[*c];
                    let name = side.registrations[*r].name.to_string();
                    ((below(&side.site.dir), name), below(&ground.checkouts[pair.checkout].path))
                });
                joined.collect::<BTreeMap<_, _>>()
            })
        };
        let (few, all) = (joined(&fewer), joined(&CLONES));
        for (registration, checkout) in all.iter().filter(|((clone, _), _)| clone != CLONES[without]) {
            prop_assert_eq!(few.get(registration), Some(checkout));
        }
    }
}
