//! Discovery, join and placement, on files that tie clones and checkouts together.

mod absence;
mod again;
mod bounds;
mod discover;
mod join;
mod join_property;
mod placement;
mod strays;
