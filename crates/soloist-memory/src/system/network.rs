//! The way of lines between nodes, over an [`Interconnect`].

use super::flow::{Event, Flow, Route};
use super::link::{Interconnect, Paths};
use crate::blame::{Cause, Label};
use crate::platform::Platform;

pub(super) struct Network {
    paths: Box<dyn Interconnect>,
    line_bytes: u64,
}

impl Network {
    pub fn new(platform: &Platform) -> Self {
        Self {
            paths: Box::new(Paths::new(platform)),
            line_bytes: u64::from(platform.memory.map.line_size()),
        }
    }

    /// Are the nodes apart?
    pub fn apart(&self, route: Route) -> bool {
        self.paths.apart(route)
    }

    /// A request sets out for its home node as soon as the path admits it.
    pub fn leave(&mut self, t: u32, flow: &mut Flow) {
        if self.paths.admit(flow.get(t).route(), t) {
            self.send_request(t, flow);
        }
    }

    fn send_request(&mut self, t: u32, flow: &mut Flow) {
        let transfer = *flow.get(t);
        let (data, event) = if transfer.write {
            (self.line_bytes, Event::Arrive(t))
        } else {
            (0, Event::Enqueue(t))
        };
        let route = transfer.route();
        let now = flow.now_ps;
        let at = self
            .paths
            .send(route, now, data, transfer.owner, flow.bill(t));
        flow.charge_base(t, at);
        flow.events.push(at, event);
    }

    /// An answer leaves the home node.
    pub fn depart(&mut self, t: u32, flow: &mut Flow) {
        let transfer = *flow.get(t);
        let data = if transfer.write { 0 } else { self.line_bytes };
        let route = transfer.route().back();
        let now = flow.now_ps;
        let at = self
            .paths
            .send(route, now, data, transfer.owner, flow.bill(t));
        flow.charge_base(t, at);
        flow.events.push(at, Event::Back(t));
    }

    /// A transfer is over: another may take its credit of the path.
    pub fn give_credit_back(&mut self, t: u32, flow: &mut Flow) {
        let route = flow.get(t).route();
        if flow.accounting {
            let label = Label::new(Cause::Link, flow.get(t).owner);
            for &waiting in self.paths.waiting(route) {
                flow.charge(waiting, flow.now_ps, label);
            }
        }
        if let Some(next) = self.paths.release(route) {
            self.send_request(next, flow);
        }
    }
}
