//! `top`: a dashboard of a running team in a terminal.

mod activity;
mod answer;
mod cards;
mod facts;
mod file;
mod frame;
mod inbox;
mod keys;
mod paint;
mod panes;
mod past;
mod review;
mod said;
mod screen;
mod team;
mod terminal;
#[cfg(test)]
mod tests;
mod turn;
mod wish;

use std::collections::HashMap;
use std::io::{self, IsTerminal as _};
use std::time::Duration;

use anyhow::anyhow;
use clap::Args;
use crossterm::event::{Event, EventStream, KeyEventKind};
use futures_util::StreamExt as _;
use ratatui::backend::TestBackend;
use ratatui::{DefaultTerminal, Terminal};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until, timeout};

use self::review::ReviewOf;
use self::screen::Screen;
pub(super) use self::terminal::RawTerminal;
use self::wish::{TeamCall, Wish};
use super::Global;
use super::output::{is_terminal, note, plain, print};
use super::team::{Which, failed};
use crate::model::{BlockedStatus, ConflictStatus, now_ms};
use crate::program::Failure;
use crate::serve::client::{ClientError, Connection, PreparedCall, Target};
use crate::view::{CardId, CardKind, LineEffect};
use crate::wire::{
    Empty, Exact, GetDiff, ListAgents, ListBlocked, ListBlockedParams, ListBudgets, ListConflicts,
    ListConflictsParams, ListEvents, Method, ServerLine, ShowBlocked, ShowBlockedParams,
    ShowConflict, ShowConflictParams,
};

/// Frames are at least so far apart, but for keys; what changes meanwhile is drawn together.
const FRAME: Duration = Duration::from_millis(200);

/// Figures of agents are asked for at most so often: the team reads them from its processes.
const FIGURES: Duration = Duration::from_secs(1);

/// How often figures are asked for that are not published, and ages are drawn anew.
const REFRESH: Duration = Duration::from_secs(2);

/// How long the team may take to take us back after it cut us off.
const RECONNECT: Duration = Duration::from_secs(5);

/// The size of a frame where there is no terminal.
const SIZE: (u16, u16) = (80, 24);

/// See a running team live, and decide what waits
///
/// Shows the agents, those that need a decision first, with their tasks and what they do now. Below
/// them is one of five panes: Team is the transcript of the selected agent, Review what it changed,
/// Map the hottest files, and Log what happened. In the Inbox are accesses and writes in conflict
/// that wait, each with its file or diff, and budgets that are used up. Below 60 columns everything
/// stands in one column. Keys stand in the last line, and `?` shows all. Colours are left out with
/// `NO_COLOR`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  eisen-core top
  ssh -t host eisen-core top --team shop
  eisen-core top --once                    one frame, for a report
  eisen-core top --once --json | jq '.blocked | length'

Exit codes: 0 left, or the team has ended; 1 no such team, 2 wrong usage.")]
pub(super) struct Top {
    /// Print one frame and leave
    #[arg(long)]
    once: bool,
    /// With --once: print what the frame is made of as a JSON object
    #[arg(long, requires = "once")]
    json: bool,
    #[command(flatten)]
    which: Which,
}

impl Top {
    pub(super) async fn run(self, global: &Global) -> Result<(), Failure> {
        let target = self.which.find(global)?;
        let has_terminal = io::stdin().is_terminal() && is_terminal();
        if !self.once && !has_terminal {
            let why = "`top` needs a terminal; `top --once` prints one frame anywhere";
            return Err(Failure::Usage(anyhow!(why)));
        }
        let team = Connection::open(&target).await.map_err(failed)?;
        let mut live = Live::new(team, &target);
        if self.json {
            live.settled(SIZE).await?;
            return print(facts::of(&mut live.team, target.team(), &live.screen).await?);
        }
        if self.once {
            return live.once().await;
        }
        let mut terminal = RawTerminal::enter().map_err(|error| Failure::Run(error.into()))?;
        let left = live.run(&mut terminal.0, &target).await;
        drop(terminal);
        if left?.is_some() {
            note(format_args!("the team `{}` has ended", plain(target.team())));
            for what in live.unknown() {
                note(format_args!("not known whether it was done: {}", plain(&what)));
            }
        }
        Ok(())
    }
}

/// The subject of an open request.
#[derive(PartialEq)]
enum OpenRequest {
    Agents,
    Blocked,
    Conflicts,
    Budgets,
    /// Events from before the view was opened.
    Past,
    /// The last prompt of an agent.
    Prompt(String),
    /// The lines that this turn of an agent changed.
    Changes(String, Option<u64>),
    /// The diff that is looked at.
    Review(ReviewOf),
    /// The file of an access or a write.
    Shown(CardId),
    /// A person wished this.
    Wish(TeamCall),
}

/// A screen with its connection.
struct Live {
    team: Connection,
    screen: Screen,
    open: HashMap<u64, OpenRequest>,
    /// The agents are to be asked for.
    is_stale: bool,
    /// When that was done last.
    asked: Option<Instant>,
}

impl Live {
    fn new(team: Connection, target: &Target) -> Self {
        let mut live = Self {
            team,
            screen: Screen::new(target.team()),
            open: HashMap::new(),
            is_stale: false,
            asked: None,
        };
        live.join();
        live
    }

    /// Asks for the state of the team, which its stream then changes.
    fn join(&mut self) {
        self.screen.joined();
        self.team.subscribe(&["session_update", "report", "task"]);
        self.team.request_snapshots();
        let pending = ListBlockedParams { status: Some(Exact(BlockedStatus::Pending)) };
        self.send::<ListBlocked>(&pending, OpenRequest::Blocked);
        let pending = ListConflictsParams { status: Some(Exact(ConflictStatus::Pending)) };
        self.send::<ListConflicts>(&pending, OpenRequest::Conflicts);
        self.send::<ListBudgets>(&Empty {}, OpenRequest::Budgets);
        self.send::<ListAgents>(&Empty {}, OpenRequest::Agents);
    }

    /// Goes on with another connection, since the team cut us off.
    fn rejoin(&mut self, team: Connection) {
        self.team = team;
        let unknown = self.unknown();
        self.screen.reconnected(&unknown);
        self.join();
    }

    /// The requests of a person that nothing will answer, in words.
    fn unknown(&mut self) -> Vec<String> {
        let mut open: Vec<_> = std::mem::take(&mut self.open).into_iter().collect();
        open.sort_unstable_by_key(|(id, _)| *id);
        let unknown = open.into_iter().filter_map(|(_, asked)| match asked {
            OpenRequest::Wish(call) => Some(call.what),
            _ => None,
        });
        unknown.collect()
    }

    fn send<M: Method>(&mut self, params: &M::Params, asked: OpenRequest) {
        self.send_prepared(&PreparedCall::of::<M>(params), asked);
    }

    fn send_prepared(&mut self, call: &PreparedCall, asked: OpenRequest) {
        self.open.insert(self.team.send_prepared(call), asked);
    }

    /// Prints one frame, once the state of the team is there.
    async fn once(&mut self) -> Result<(), Failure> {
        let size = terminal_size::terminal_size().filter(|_| is_terminal());
        let (width, height) = size.map_or(SIZE, |(width, height)| (width.0, height.0));
        self.settled((width, height)).await?;
        let mut terminal = Terminal::new(TestBackend::new(width, height))
            .map_err(|error| Failure::Run(anyhow!("{error}")))?;
        self.settle(width, height);
        let drawn = terminal.draw(|frame| frame::draw(&self.screen, frame, now_ms()));
        drawn.map_err(|error| Failure::Run(anyhow!("{error}")))?;
        print(paint::printed_lines(terminal.backend().buffer()).join("\n"))
    }

    /// Waits until all is there that a frame shows.
    async fn settled(&mut self, (width, height): (u16, u16)) -> Result<(), Failure> {
        while !self.open.is_empty() {
            let (kind, line) = self.team.next_line().await.map_err(failed)?;
            self.line(&kind, &line);
            if self.open.is_empty() {
                self.settle(width, height);
                self.ask_file();
                self.ask_journal();
            }
        }
        Ok(())
    }

    /// Draws until a person leaves, or the team ends: why it did.
    async fn run(
        &mut self,
        terminal: &mut DefaultTerminal,
        target: &Target,
    ) -> Result<Option<ClientError>, Failure> {
        let fault = |error: io::Error| Failure::Run(error.into());
        let mut keys = EventStream::new();
        let ends = [SignalKind::terminate(), SignalKind::hangup(), SignalKind::interrupt()];
        let [Ok(mut terminated), Ok(mut hung_up), Ok(mut interrupted)] = ends.map(signal) else {
            return Err(Failure::Run(anyhow!("cannot wait for signals")));
        };
        let mut refresh = interval(REFRESH);
        refresh.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut changed, mut drawn) = (true, None::<Instant>);
        loop {
            // Not in the branches below: a flood of lines must not keep a frame back.
            if changed && drawn.is_none_or(|drawn| drawn.elapsed() >= FRAME) {
                self.draw(terminal).map_err(fault)?;
                (changed, drawn) = (false, Some(Instant::now()));
                self.ask_agents();
                self.ask_file();
                self.ask_journal();
            }
            let due = drawn.map_or_else(Instant::now, |drawn| drawn + FRAME);
            tokio::select! {
                biased;
                _ = terminated.recv() => return Ok(None),
                _ = hung_up.recv() => return Ok(None),
                _ = interrupted.recv() => return Ok(None),
                event = keys.next() => match event {
                    Some(Ok(Event::Key(key))) if key.kind != KeyEventKind::Release => {
                        match self.screen.key(key, Instant::now()) {
                            Some(Wish::Quit) => return Ok(None),
                            Some(Wish::Call(call)) => {
                                self.send_prepared(&call.call.clone(), OpenRequest::Wish(call));
                            }
                            None => {}
                        }
                        (changed, drawn) = (true, None);
                    }
                    Some(Ok(Event::Paste(text))) => {
                        self.screen.pasted(&text);
                        (changed, drawn) = (true, None);
                    }
                    Some(Ok(Event::Resize(..))) => (changed, drawn) = (true, None),
                    Some(Ok(_)) => {}
                    Some(Err(error)) => return Err(fault(error)),
                    None => return Ok(None),
                },
                () = sleep_until(due), if changed => {}
                line = self.team.next_line() => match line {
                    Ok((kind, line)) => changed |= self.line(&kind, &line),
                    Err(ended) => match timeout(RECONNECT, Connection::open(target)).await {
                        // It cuts off readers that are too slow.
                        Ok(Ok(team)) => self.rejoin(team),
                        _ => return Ok(Some(ended)),
                    },
                },
                _ = refresh.tick() => {
                    self.is_stale = true;
                    self.screen.show_overdue(Instant::now());
                    changed = true;
                }
            }
        }
    }

    fn draw(&mut self, terminal: &mut DefaultTerminal) -> io::Result<()> {
        let size = terminal.size()?;
        self.settle(size.width, size.height);
        terminal.draw(|frame| frame::draw(&self.screen, frame, now_ms())).map(drop)
    }

    fn settle(&mut self, columns: u16, height: u16) {
        let width = frame::card_width(&self.screen, columns, height);
        self.screen.settle(Instant::now(), width);
        self.screen.review.fit(usize::from(columns));
    }

    /// Asks for the agents, if they changed and it is time.
    fn ask_agents(&mut self) {
        let now = Instant::now();
        let is_due = self.asked.is_none_or(|asked| now.duration_since(asked) >= FIGURES);
        if self.is_stale && is_due && !self.open.values().any(|it| *it == OpenRequest::Agents) {
            (self.is_stale, self.asked) = (false, Some(now));
            self.send::<ListAgents>(&Empty {}, OpenRequest::Agents);
        }
    }

    /// Asks for the file of the selected card, one at a time: a person may run through many cards.
    fn ask_file(&mut self) {
        let Some(card) = self.screen.inbox.wanted().cloned() else { return };
        if !self.open.values().any(|it| matches!(it, OpenRequest::Shown(_))) {
            let (id, asked) = (card.id.clone(), OpenRequest::Shown(card.clone()));
            if card.kind == CardKind::Conflict {
                self.send::<ShowConflict>(&ShowConflictParams { id: id.into() }, asked);
            } else {
                self.send::<ShowBlocked>(&ShowBlockedParams { id: id.into() }, asked);
            }
            self.screen.inbox.asked(card);
        }
    }

    /// Asks the journal for what was before, for the tasks of agents, and for what they changed.
    fn ask_journal(&mut self) {
        if let Some(page) = self.screen.wanted_past() {
            self.send::<ListEvents>(&page, OpenRequest::Past);
        }
        if !self.open.values().any(|it| matches!(it, OpenRequest::Prompt(_)))
            && let Some((agent, asked)) = self.screen.wanted_prompt(now_ms())
        {
            self.send::<ListEvents>(&asked, OpenRequest::Prompt(agent));
        }
        if !self.open.values().any(|it| matches!(it, OpenRequest::Changes(..)))
            && let Some((agent, asked)) = self.screen.wanted_changes(now_ms())
        {
            self.send::<GetDiff>(&asked, OpenRequest::Changes(agent, asked.turn));
        }
        if let Some((of, asked)) = self.screen.wanted_review(now_ms()) {
            self.send::<GetDiff>(&asked, OpenRequest::Review(of));
        }
    }

    /// Takes a line of the port; true if something that is shown changed.
    fn line(&mut self, kind: &str, line: &[u8]) -> bool {
        match kind {
            "rpc_result" | "rpc_error" => return self.answer(line),
            "lagged" => self.screen.missed("lines of the team were missed here"),
            "blocked" | "conflict" | "session_update" | "turn" => {
                match ServerLine::read(line) {
                    Ok(ServerLine::SessionUpdate(said)) => {
                        let update = serde_json::from_str(said.update.get()).unwrap_or_default();
                        let (agent, session) = (&said.agent_id, &said.session_id);
                        self.screen.update(agent, session, &update, Instant::now());
                        return true;
                    }
                    Ok(ServerLine::Turn(turn)) => self.screen.turn(&turn),
                    Ok(line) => self.screen.decided(&line),
                    // The view says so, where a person has to know.
                    Err(_) => {}
                }
            }
            _ => {}
        }
        match self.screen.view.line(kind, line) {
            LineEffect::Nothing => false,
            LineEffect::Shown => true,
            LineEffect::Agents => {
                self.is_stale = true;
                true
            }
        }
    }
}
