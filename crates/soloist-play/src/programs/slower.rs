//! A program with so many times as many instructions between its accesses.

use super::step::{Access, Program, Step};

/// A program with so many times as many instructions between its accesses.
pub struct Slower {
    program: Box<dyn Program>,
    times: f64,
    /// What rounding owes.
    owed: f64,
}

impl Slower {
    /// `program` with `times` as many.
    pub fn new(program: Box<dyn Program>, times: f64) -> Self {
        Self {
            program,
            times,
            owed: 0.0,
        }
    }
}

impl Program for Slower {
    fn step(&mut self) -> Step {
        match self.program.step() {
            Step::Access(access) => {
                self.owed += f64::from(access.work) * self.times;
                let work = self.owed.floor();
                self.owed -= work;
                Step::Access(Access {
                    work: work as u32,
                    ..access
                })
            }
            step => step,
        }
    }

    fn bytes(&self) -> u64 {
        self.program.bytes()
    }

    fn moves_on(&self) -> bool {
        self.program.moves_on()
    }

    fn defeats_prefetch(&self) -> bool {
        self.program.defeats_prefetch()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::programs::triad::Triad;

    #[test]
    fn instructions_are_so_many_times_as_many() {
        let work = |mut program: Box<dyn Program>| {
            let mut sum = 0;
            while let Step::Access(access) = program.step() {
                sum += access.work;
            }
            sum
        };
        let triad = || Box::new(Triad::new(64 << 10, 64, 1000));
        let usual = work(triad());
        assert_eq!(work(Box::new(Slower::new(triad(), 4.0))), 4 * usual);
        assert_eq!(work(Box::new(Slower::new(triad(), 0.25))), usual / 4);
    }
}
