use crate::beneath::Dir;
use crate::judge::tree_facts::{SubmoduleFacts, SubmoduleState};
pub fn modules_facts(entry: &Dir) -> Vec<SubmoduleFacts> {
    match entry.dir("modules") {
        Err(crate::beneath::Refused::Absent) => Vec::new(),
        _ => vec![SubmoduleFacts {
            path: "modules".into(),
            state: SubmoduleState::Unreadable("not looked at".into()),
        }],
    }
}
