//! Rows of worktrees as aligned lines. The reason stands in the last column where the terminal is wide enough for
//! it, else below its row.

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table, presets};

use super::Style;
use super::text::{indented, wrap};

/// One worktree's cells. Everything is escaped already, so no cell has a line break.
#[derive(Clone, Debug, Default)]
pub struct Cells {
    /// Never empty: a line whose first column is empty continues the row above.
    pub verdict: String,
    pub name: String,
    pub branch: String,
    pub state: String,
    pub size: String,
    pub active: String,
    pub why: String,
}

/// The lines of a header, and those of each row, in the order of the rows.
pub struct Blocks {
    pub header: String,
    pub rows: Vec<String>,
}

const HEADER: [&str; 6] = ["VERDICT", "WORKTREE", "BRANCH", "STATE", "SIZE", "ACTIVE"];
const SIZE: usize = 4;
const INDENT: usize = 2;
const GAP: usize = 2;
/// A narrower terminal, if the columns don't fit, is no place for columns.
const NARROW: usize = 60;
/// Fewer columns than this are no place for a sentence.
const LEAST_WHY: usize = 40;

/// Lays out all rows with the same columns; `paint` colours a verdict.
pub fn blocks(rows: &[Cells], style: &Style, paint: impl Fn(&str) -> String) -> Blocks {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(HEADER);
    for cells in rows {
        table.add_row([&cells.verdict, &cells.name, &cells.branch, &cells.state, &cells.size, &cells.active]);
    }
    let widths = table.column_max_content_widths();
    let natural: usize = widths.iter().map(|w| usize::from(*w) + GAP).sum();
    if style.width.is_some_and(|width| width < NARROW && INDENT + natural > width + GAP) {
        return stacked(rows, style, paint);
    }
    let beside = style.width.is_none_or(|width| INDENT + natural + LEAST_WHY <= width);
    if beside {
        table = with_why(rows);
    }
    shape(&mut table, style.width, beside);
    let under = INDENT + usize::from(widths[0]) + GAP;
    let mut blocks = split(&table, |row| paint(&rows[row].verdict), style);
    if !beside {
        for (block, cells) in blocks.rows.iter_mut().zip(rows).filter(|(_, c)| !c.why.is_empty()) {
            block.push_str(&indented(&cells.why, under, style));
        }
    }
    blocks
}

/// Verdict and name on the first line, everything else below the name.
fn stacked(rows: &[Cells], style: &Style, paint: impl Fn(&str) -> String) -> Blocks {
    let verdict = rows.iter().map(|c| c.verdict.len()).max().unwrap_or(0).max(HEADER[0].len());
    let under = INDENT + verdict + GAP;
    let header = format!("{:INDENT$}{:verdict$}{:GAP$}{}", "", HEADER[0], "", HEADER[1]);
    let row = |cells: &Cells| {
        let names = wrap(&cells.name, style.width.map(|w| w.saturating_sub(under)));
        let pad = under - INDENT - cells.verdict.len();
        let mut block = format!("{:INDENT$}{}{:pad$}", "", paint(&cells.verdict), "");
        block.push_str(&(names.join(&format!("\n{:under$}", "")) + "\n"));
        let facts: Vec<&str> = [&cells.branch, &cells.state, &cells.size, &cells.active]
            .into_iter()
            .map(String::as_str)
            .filter(|f| !f.is_empty())
            .collect();
        for text in [facts.join(", "), cells.why.clone()].iter().filter(|text| !text.is_empty()) {
            block.push_str(&indented(text, under, style));
        }
        block
    };
    Blocks { header: format!("{}\n", style.dim(header)), rows: rows.iter().map(row).collect() }
}

fn with_why(rows: &[Cells]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(HEADER.iter().chain(&["WHY"]));
    for c in rows {
        table.add_row([&c.verdict, &c.name, &c.branch, &c.state, &c.size, &c.active, &c.why]);
    }
    table
}

fn shape(table: &mut Table, width: Option<usize>, beside: bool) {
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, GAP as u16));
        if index == 0 || (beside && index < HEADER.len()) {
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
        if index == SIZE {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    if let Some(width) = width {
        // The gap after the last column may hang over the edge: it is cut off.
        let inner = (width - INDENT + GAP).min(usize::from(u16::MAX));
        table.set_width(inner as u16).set_content_arrangement(ContentArrangement::Dynamic);
    }
}

/// Puts the lines back to their rows and colours what starts a row. Colours come last, so that no escape sequence is
/// measured or wrapped.
fn split(table: &Table, verdict: impl Fn(usize) -> String, style: &Style) -> Blocks {
    let mut blocks = Blocks { header: String::new(), rows: Vec::new() };
    for (number, line) in table.lines().enumerate() {
        let line = line.trim_end();
        match blocks.rows.last_mut() {
            None if number == 0 || line.starts_with(' ') => {
                blocks.header.push_str(&format!("{:INDENT$}{}\n", "", style.dim(line)));
            }
            Some(block) if line.starts_with(' ') => block.push_str(&format!("{:INDENT$}{line}\n", "")),
            _ => {
                let word = line.find(' ').unwrap_or(line.len());
                let painted = verdict(blocks.rows.len());
                blocks.rows.push(format!("{:INDENT$}{painted}{}\n", "", &line[word..]));
            }
        }
    }
    blocks
}
