//! The live view.

use std::time::{Duration, Instant};

use anyhow::Result;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Block, Paragraph, Row, Table, TableState};
use ratatui::{DefaultTerminal, Frame};
use soloist_host::GroupRates;

use super::{Watch, COLUMNS};

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
        frame.render_stateful_widget(self.table(), table, &mut state);
        self.state = state;
        frame.render_widget(self.detail(), detail);
        frame.render_widget(self.keys(), keys);
    }

    fn table(&self) -> Table<'_> {
        let heads = COLUMNS.iter().enumerate().map(|(at, column)| {
            let style = match at == self.sort {
                true => Style::new().add_modifier(Modifier::BOLD | Modifier::UNDERLINED),
                false => Style::new().add_modifier(Modifier::BOLD),
            };
            Line::styled(column.head, style)
        });
        let width = |column: &super::Column| {
            let cells = self.groups.iter().map(|g| (column.cell)(g).chars().count());
            let widest = cells.chain([column.head.len()]).max().unwrap_or(0);
            Constraint::Length(widest.min(40) as u16)
        };
        let rows = self.groups.iter().map(|group| {
            let cells = COLUMNS.iter().map(|column| (column.cell)(group));
            Row::new(cells).style(self.style(group))
        });
        Table::new(rows, COLUMNS.iter().map(width))
            .header(Row::new(heads))
            .column_spacing(2)
            .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED))
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

    fn keys(&self) -> Line<'_> {
        let sorts = COLUMNS.iter().filter(|column| column.key != ' ');
        let sorts: Vec<String> = sorts
            .map(|column| format!("{} {}", column.key, column.head.to_lowercase()))
            .collect();
        Line::styled(
            format!("q quit  arrows pick  sort: {}", sorts.join("  ")),
            Style::new().add_modifier(Modifier::DIM),
        )
    }
}
