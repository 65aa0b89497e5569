//! The memory side: nodes with their queues, data paths and controllers.
//!
//! A node's queue is served in order. A request leaves it when its controller
//! has room and has issued all commands up to then. Data leave a node's memory
//! in the order of the column commands, so the way back is settled with the
//! command, unless the data path is shared with writes or answers in order.

use soloist_machine::memory::NorthbridgeConfig;

use super::flow::{Event, Flow, Transfer, NEVER};
use super::node::Node;
use crate::blame::{Cause, Label};
use crate::controller::{CommandCounts, Completion, Controller, Request, RowOutcome};
use crate::platform::Platform;

/// All nodes' memory.
pub(super) struct Home {
    nodes: Vec<Node>,
    controllers: Vec<Controller>,
    /// When each controller issues its next command, ps.
    due: Vec<u64>,
    /// The controller that is due first, the lowest of several.
    first: usize,
    channels_per_node: usize,
    /// Node of each channel.
    node_of: Vec<u16>,
    line_bytes: u64,
    tck_ps: u64,
    northbridge: NorthbridgeConfig,
}

impl Home {
    pub fn new(platform: &Platform) -> Self {
        let memory = &platform.memory;
        let channels_per_node = memory.map.n_channels() as usize;
        let nodes = memory.map.n_nodes() as usize;
        let channels = nodes * channels_per_node;
        let controller = || Controller::new(&memory.device, &memory.geometry, &memory.policy);
        Self {
            nodes: (0..nodes)
                .map(|_| Node::new(&platform.northbridge))
                .collect(),
            controllers: (0..channels).map(|_| controller()).collect(),
            due: vec![NEVER; channels],
            first: 0,
            channels_per_node,
            node_of: (0..channels)
                .map(|channel| (channel / channels_per_node) as u16)
                .collect(),
            line_bytes: u64::from(memory.map.line_size()),
            tck_ps: u64::from(memory.device.tck_ps),
            northbridge: platform.northbridge.clone(),
        }
    }

    pub fn account(&mut self) {
        self.controllers.iter_mut().for_each(Controller::account);
    }

    /// Commands that the controllers issued, channel by channel.
    pub fn counts(&self) -> Vec<CommandCounts> {
        self.controllers.iter().map(Controller::counts).collect()
    }

    /// The node of a channel.
    #[inline]
    pub fn node_of(&self, channel: u16) -> u16 {
        self.node_of[usize::from(channel)]
    }

    /// When the next command is due, ps.
    #[inline]
    pub fn due(&self) -> u64 {
        self.due[self.first]
    }

    /// Nothing else happens any more: writes need not wait for company. False
    /// if there are none.
    pub fn flush(&mut self) -> bool {
        if self.controllers.iter().all(|c| c.pending() == 0) {
            return false;
        }
        self.controllers.iter_mut().for_each(Controller::flush);
        (0..self.nodes.len()).for_each(|node| self.schedule(node));
        true
    }

    /// A line to be written takes its time on the data path of its home node.
    pub fn arrive(&mut self, t: u32, flow: &mut Flow) {
        let &Transfer { home, owner, .. } = flow.get(t);
        let path = self.nodes[usize::from(home)].write_path();
        let at = path.send(flow.now_ps, self.line_bytes, owner, flow.bill(t));
        flow.charge_base(t, at);
        flow.events.push(at, Event::Enqueue(t));
    }

    /// A request enters the queue of its home node.
    pub fn enqueue(&mut self, t: u32, flow: &mut Flow) {
        let node = usize::from(flow.get(t).home);
        let queue = &mut self.nodes[node].queue;
        queue.push_back(t);
        // The first of several waits for a command to make room.
        if queue.len() == 1 {
            self.dispatch(node, flow);
            self.schedule(node);
        }
    }

    /// The first controller that is due at `at` issues its command.
    pub fn command(&mut self, at: u64, flow: &mut Flow) {
        let channel = self.first;
        flow.now_ps = flow.now_ps.max(at);
        self.step(channel, flow);
        let node = usize::from(self.node_of[channel]);
        self.dispatch(node, flow);
        self.schedule(node);
    }

    /// Hands requests of a node's queue to the controllers, in order.
    fn dispatch(&mut self, node: usize, flow: &mut Flow) {
        while let Some(&t) = self.nodes[node].queue.front() {
            if self.nodes[node]
                .order
                .as_ref()
                .is_some_and(|o| !o.has_room())
            {
                return;
            }
            let transfer = *flow.get(t);
            let channel = transfer.channel();
            let Some(at) = self.take_at(&transfer, flow) else {
                return;
            };
            if flow.accounting {
                self.bill_queue(node, t, at * self.tck_ps, flow);
            }
            let controller = &mut self.controllers[channel];
            controller.idle_until(at);
            self.nodes[node].queue.pop_front();
            if let Some(order) = &mut self.nodes[node].order {
                order.enter(t);
            }
            let buffered = controller.push(
                at,
                Request {
                    token: u64::from(t),
                    line: transfer.line,
                    bank: transfer.place.bank,
                    row: transfer.place.row,
                    write: transfer.write,
                    owner: transfer.owner,
                },
            );
            match buffered {
                Some(completion) => self.completed(channel, &completion, flow),
                // A write is answered when the controller has taken it.
                None if transfer.write => {
                    self.answer(t, (at * self.tck_ps).max(flow.now_ps), flow);
                }
                None => {}
            }
        }
    }

    /// The first of a node's queue goes on at `at`: who held up all of them?
    fn bill_queue(&mut self, node: usize, first: u32, at: u64, flow: &mut Flow) {
        let &Transfer { place, write, .. } = flow.get(first);
        let Some(bill) = flow.bill(first) else {
            return;
        };
        if at <= bill.end() + self.tck_ps {
            return flow.charge_base(first, at);
        }
        let label = self.controllers[usize::from(place.channel)].busy_with(write);
        for &t in &self.nodes[node].queue {
            flow.charge(t, at, label);
        }
    }

    /// Cycle in which the controller can take a request, all commands up to
    /// then issued; `None` while its queue is full.
    fn take_at(&mut self, transfer: &Transfer, flow: &mut Flow) -> Option<u64> {
        let channel = transfer.channel();
        loop {
            let controller = &self.controllers[channel];
            let room = controller.room_at(transfer.write)?;
            // Never before what the controller has decided already.
            let decided = controller.now().saturating_sub(1);
            let at = flow.now_ps.div_ceil(self.tck_ps).max(room).max(decided);
            if controller.next().is_none_or(|next| next > at) {
                return Some(at);
            }
            self.step(channel, flow);
        }
    }

    fn step(&mut self, channel: usize, flow: &mut Flow) {
        if let Some(completion) = self.controllers[channel].step() {
            self.completed(channel, &completion, flow);
        }
    }

    fn completed(&mut self, channel: usize, c: &Completion, flow: &mut Flow) {
        let t = c.token as u32;
        let done = (c.done * self.tck_ps).max(flow.now_ps);
        if !c.write {
            self.bill_channel(t, channel, flow);
            // In the order of time where the order of commands is another. On a bus that
            // answers in order it has its place until then.
            let bus = &self.northbridge;
            if c.outcome == RowOutcome::Buffered || bus.shared || bus.in_order > 0 {
                flow.events.push(done, Event::Answer(t));
            } else {
                self.answer(t, done, flow);
            }
        } else if c.outcome == RowOutcome::Buffered {
            self.answer(t, done, flow);
        }
    }

    /// Takes over what the controller billed a transfer for.
    fn bill_channel(&mut self, t: u32, channel: usize, flow: &mut Flow) {
        let base = flow.get(t).base;
        let (Some(own), Some(bill)) = (self.controllers[channel].bill(), flow.bill(t)) else {
            return;
        };
        for (_, end, label) in own.slices() {
            let own = label.cause == Cause::Base;
            bill.until(end * self.tck_ps, if own { base } else { label });
        }
    }

    /// Notes when a node's controllers have something to do.
    #[inline]
    fn schedule(&mut self, node: usize) {
        let own = node * self.channels_per_node..(node + 1) * self.channels_per_node;
        for channel in own {
            let next = self.controllers[channel].next();
            self.due[channel] = next.map_or(NEVER, |t| t * self.tck_ps);
        }
        let (mut first, mut least) = (0, NEVER);
        for (channel, &due) in self.due.iter().enumerate() {
            if due < least {
                (first, least) = (channel, due);
            }
        }
        self.first = first;
    }

    /// At `ready` the home node has the data, or has taken the line: it answers, or
    /// waits until it has answered those that asked before.
    fn answer(&mut self, t: u32, ready: u64, flow: &mut Flow) {
        let &Transfer { home, owner, .. } = flow.get(t);
        let Some(order) = &mut self.nodes[usize::from(home)].order else {
            return self.send(t, ready, flow);
        };
        for (t, at) in order.ready(t, ready) {
            flow.charge(t, at, Label::new(Cause::Queue, owner));
            self.send(t, at, flow);
        }
    }

    /// The same where it happens now: what it made room for goes on.
    pub fn answered(&mut self, t: u32, flow: &mut Flow) {
        let node = usize::from(flow.get(t).home);
        self.answer(t, flow.now_ps, flow);
        if self.nodes[node].order.is_some() {
            self.dispatch(node, flow);
            self.schedule(node);
        }
    }

    /// An answer sets out.
    fn send(&mut self, t: u32, ready: u64, flow: &mut Flow) {
        let &Transfer {
            home,
            write,
            owner,
            apart,
            ..
        } = flow.get(t);
        let mut at = ready;
        if !write {
            let path = self.nodes[usize::from(home)].read_path();
            at = path.send(at, self.line_bytes, owner, flow.bill(t));
        }
        at += self.northbridge.response_ps;
        flow.charge_base(t, at);
        let event = if apart {
            Event::Depart(t)
        } else {
            Event::Back(t)
        };
        flow.events.push(at, event);
    }
}
