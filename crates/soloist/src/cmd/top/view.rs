//! The live view.

use std::time::{Duration, Instant};

use anyhow::Result;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Block, Paragraph, Row, Table, TableState};
use ratatui::{DefaultTerminal, Frame};
use soloist_host::observe::GroupRates;

use super::{Column, Watch, COLUMNS};

/// Blanks between two columns.
const SPACING: usize = 2;
/// Letters of a column at most, so that a long name leaves room for figures.
const WIDEST: usize = 40;

/// Columns that a narrow terminal does without, by their keys; the first goes
/// first. Piped, the table has them all.
const LEAST: &[char] = &['r', 'h', 'e', 'v', 's', 'o', ' ', 't', 'x'];

/// Shows the groups until `q`, Esc or Ctrl-C; the terminal is as it was then.
pub fn show(watch: &mut Watch, interval: Duration, color: bool) -> Result<()> {
    let mut view = View {
        groups: watch.look()?,
        sort: 0,
        state: TableState::default().with_selected(0),
        color,
    };
    let mut terminal = ratatui::try_init()?;
    let done = view.run(&mut terminal, watch, interval);
    ratatui::restore();
    done
}

struct View {
    groups: Vec<GroupRates>,
    /// The column that it is sorted by.
    sort: usize,
    state: TableState,
    color: bool,
}

impl View {
    fn run(
        &mut self,
        terminal: &mut DefaultTerminal,
        watch: &mut Watch,
        interval: Duration,
    ) -> Result<()> {
        let mut looked = Instant::now();
        loop {
            self.order();
            terminal.draw(|frame| self.draw(frame))?;
            let left = interval.saturating_sub(looked.elapsed());
            if event::poll(left)? {
                if let Event::Key(key) = event::read()? {
                    let ctrl_c = key.modifiers.contains(KeyModifiers::CONTROL)
                        && key.code == KeyCode::Char('c');
                    if ctrl_c || (key.kind == KeyEventKind::Press && self.press(key.code)) {
                        return Ok(());
                    }
                }
            }
            if looked.elapsed() >= interval {
                self.groups = watch.look()?;
                looked = Instant::now();
            }
        }
    }

    /// Whether it is the end.
    fn press(&mut self, key: KeyCode) -> bool {
        match key {
            KeyCode::Char('q') | KeyCode::Esc => return true,
            KeyCode::Down | KeyCode::Char('j') => self.state.select_next(),
            KeyCode::Up | KeyCode::Char('k') => self.state.select_previous(),
            KeyCode::Char(key) => {
                if let Some(at) = COLUMNS.iter().position(|c| c.key == key && key != ' ') {
                    self.sort = at;
                }
            }
            _ => {}
        }
        false
    }

    fn order(&mut self) {
        match COLUMNS[self.sort].rank {
            None => self.groups.sort_by(|a, b| a.name.cmp(&b.name)),
            Some(rank) => self
                .groups
                .sort_by(|a, b| rank(b).total_cmp(&rank(a)).then(a.name.cmp(&b.name))),
        }
    }

    fn draw(&mut self, frame: &mut Frame) {
        let [table, detail, keys] = Layout::vertical([
            Constraint::Min(3),
            Constraint::Length(6),
            Constraint::Length(1),
        ])
        .areas(frame.area());
        let mut state = self.state.clone();
        frame.render_stateful_widget(self.table(table.width), table, &mut state);
        self.state = state;
        frame.render_widget(self.detail(), detail);
        frame.render_widget(self.keys(keys.width), keys);
    }

    fn table(&self, width: u16) -> Table<'_> {
        let columns = self.columns(width.into());
        let heads = columns.iter().map(|column| {
            let style = match column.key == COLUMNS[self.sort].key {
                true => Style::new().add_modifier(Modifier::BOLD | Modifier::UNDERLINED),
                false => Style::new().add_modifier(Modifier::BOLD),
            };
            Line::styled(column.head, style)
        });
        let rows = self.groups.iter().map(|group| {
            let cells = columns.iter().map(|column| cell(column, group));
            Row::new(cells).style(self.style(group))
        });
        let widths = columns
            .iter()
            .map(|column| Constraint::Length(self.width(column) as u16));
        Table::new(rows, widths)
            .header(Row::new(heads))
            .column_spacing(SPACING as u16)
            .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED))
    }

    /// The columns that `width` has room for, all of each; never without the
    /// one that it is sorted by.
    fn columns(&self, width: usize) -> Vec<&'static Column> {
        let mut columns: Vec<&Column> = COLUMNS.iter().collect();
        for least in LEAST {
            let taken: usize = columns.iter().map(|c| self.width(c) + SPACING).sum();
            if taken <= width + SPACING {
                break;
            }
            columns.retain(|c| c.key != *least || c.key == COLUMNS[self.sort].key);
        }
        columns
    }

    fn width(&self, column: &Column) -> usize {
        let cells = self.groups.iter().map(|g| cell(column, g).chars().count());
        cells.chain([column.head.len()]).max().unwrap_or(0)
    }

    /// Red: pages leave their colour now; yellow: some are out of it.
    fn style(&self, group: &GroupRates) -> Style {
        let failing = [group.spilled, group.exhausted];
        let colour = if failing.iter().flatten().any(|&rate| rate > 0.0) {
            Color::Red
        } else if group.in_color.is_some_and(|share| share < 0.999) {
            Color::Yellow
        } else {
            return Style::new();
        };
        match self.color {
            true => Style::new().fg(colour),
            false => Style::new(),
        }
    }

    /// The group that is picked: its pages out of colour, by reason.
    fn detail(&self) -> Paragraph<'_> {
        let picked = self.state.selected().and_then(|at| self.groups.get(at));
        let Some(group) = picked else {
            let none = "no groups; `soloist run -- CMD` makes one for a command";
            return Paragraph::new(none).block(Block::bordered());
        };
        let mut reasons: Vec<_> = group.not_in_color.iter().collect();
        reasons.sort_by_key(|(_, &pages)| std::cmp::Reverse(pages));
        let lines: Vec<Line> = match (reasons.is_empty(), group.in_color) {
            (true, None) if group.tasks == 0 => vec![Line::from("nothing runs in it")],
            (true, None) => vec![Line::from("its pages can't be seen, or there are too many")],
            (true, Some(_)) => vec![Line::from("all its own pages are in colour")],
            _ => reasons
                .iter()
                .map(|(reason, pages)| Line::from(format!("{pages:>8} pages: {reason}")))
                .collect(),
        };
        let title = format!(" {}: out of colour ", group.name);
        Paragraph::new(lines).block(Block::bordered().title(title))
    }

    /// The keys with what they sort by, or without where that has no room.
    fn keys(&self, width: u16) -> Line<'_> {
        let sorts = || COLUMNS.iter().filter(|column| column.key != ' ');
        let named: Vec<String> = sorts()
            .map(|column| format!("{} {}", column.key, column.head.to_lowercase()))
            .collect();
        let bare: Vec<String> = sorts().map(|column| column.key.to_string()).collect();
        let by = COLUMNS[self.sort].head.to_lowercase();
        let lines = [
            format!("q quit  arrows pick  sort: {}", named.join("  ")),
            format!("q quit  arrows pick  sort: {}", named.join(" ")),
            format!("q quit  arrows pick  by {by}; or {}", bare.join(" ")),
        ];
        let fits = |line: &&String| line.len() <= width.into();
        let line = lines.iter().find(fits).unwrap_or(&lines[2]);
        Line::styled(line.clone(), Style::new().add_modifier(Modifier::DIM))
    }
}

/// A group's text in a column; one that is too long ends with a mark.
fn cell(column: &Column, group: &GroupRates) -> String {
    let text = (column.cell)(group);
    match text.chars().count() > WIDEST {
        true => text.chars().take(WIDEST - 1).chain(['…']).collect(),
        false => text,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed unwrap is a failed test
mod tests {
    use ratatui::backend::TestBackend;
    use ratatui::Terminal;

    use super::*;

    /// The view's lines on a terminal of `width` columns.
    fn drawn(width: u16, sort: char) -> Vec<String> {
        drawn_of("video#3", width, sort)
    }

    fn drawn_of(name: &str, width: u16, sort: char) -> Vec<String> {
        let group = GroupRates {
            name: name.to_owned(),
            implicit: true,
            bank_sets: "0-3,8".to_owned(),
            tasks: 12,
            pages: 123_456,
            in_color: Some(0.987),
            ..GroupRates::default()
        };
        let mut view = View {
            groups: vec![group],
            sort: COLUMNS.iter().position(|c| c.key == sort).unwrap(),
            state: TableState::default().with_selected(0),
            color: true,
        };
        let mut terminal = Terminal::new(TestBackend::new(width, 12)).unwrap();
        terminal.draw(|frame| view.draw(frame)).unwrap();
        let cells = terminal.backend().buffer().content();
        let lines = cells.chunks(width.into());
        let text = |line: &[ratatui::buffer::Cell]| line.iter().map(|c| c.symbol()).collect();
        lines
            .map(text)
            .map(|l: String| l.trim_end().to_owned())
            .collect()
    }

    #[test]
    fn nothing_is_cut_off_on_a_narrow_terminal() {
        for (width, sort) in [(200, 'n'), (130, 'n'), (80, 'n'), (80, 'e'), (60, 'o')] {
            let lines = drawn(width, sort);
            let keys = lines.last().unwrap();
            assert!(keys.starts_with("q quit  arrows pick"), "{width}: {keys}");
            let last = keys.ends_with("o stopped") || keys.ends_with(" b v o");
            assert!(last, "{width}: {keys}");
            let words: Vec<&str> = lines[0].split("  ").filter(|w| !w.is_empty()).collect();
            for word in &words {
                let whole = COLUMNS.iter().any(|column| column.head == word.trim());
                assert!(whole, "{width}: {word:?} of {}", lines[0]);
            }
            let by = COLUMNS.iter().find(|c| c.key == sort).unwrap().head;
            assert!(words.iter().any(|w| w.trim() == by), "{width}: {words:?}");
            assert!(lines[1].contains("video#3"), "{width}: {}", lines[1]);
        }
    }

    #[test]
    fn a_name_that_is_cut_says_so() {
        let lines = drawn_of(&"n".repeat(64), 80, 'n');
        let cut = format!("{}…  ", "n".repeat(39));
        assert!(lines[1].contains(&cut), "{}", lines[1]);
        assert!(lines[0].contains("IN COLOUR"), "{}", lines[0]);
    }

    #[test]
    fn a_group_without_tasks_is_said_to_have_none() {
        let detail = |tasks| {
            let group = GroupRates {
                tasks,
                ..GroupRates::default()
            };
            let view = View {
                groups: vec![group],
                sort: 0,
                state: TableState::default().with_selected(0),
                color: false,
            };
            format!("{:?}", view.detail())
        };
        assert!(detail(0).contains("nothing runs in it"));
        assert!(detail(1).contains("can't be seen"));
    }

    #[test]
    fn a_wide_terminal_has_everything() {
        let lines = drawn(200, 'n');
        for column in COLUMNS {
            assert!(lines[0].contains(column.head), "{}", lines[0]);
        }
        assert!(lines.last().unwrap().contains("e exhausted/s"));
    }
}
