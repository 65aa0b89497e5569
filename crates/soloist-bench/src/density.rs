//! Banks for each busy core: what private banks save, by how many banks there are.
//!
//! Slices and numbers of neighbours give points. What is saved goes with neighbours as much
//! as with banks, so only slices beside the most neighbours say what to expect where all
//! processors of this machine are busy: where enough of them show an effect, a straight line
//! through their logarithms, each weighed by how sure it is. That is a fit, and is called one.
//! There is none where a slice without an effect contradicts it.

use serde::{Deserialize, Serialize};

use crate::cores::Attack;
use crate::slices::Cell;
use crate::statistics::difference::at_most;

/// Points that a line is drawn through, at least, and how far apart they must lie.
const LEAST_POINTS: usize = 3;
const LEAST_SPAN: f64 = 1.9;
/// Standard deviations that 99 of 100 cases lie within.
const SURE: f64 = 2.576;
/// The same where the deviation is drawn from points itself, so many more than the line has
/// figures: the 99.5 per cent quantile of Student's t. The last one serves for more, too.
const STUDENT: [f64; 10] = [
    63.657, 9.925, 5.841, 4.604, 4.032, 3.707, 3.499, 3.355, 3.250, 3.169,
];
/// Numbers of banks for each core that differ by less, as a share, are one.
const NEAR: f64 = 0.01;
/// No point is surer than by a thousandth.
const LEAST_VARIANCE: f64 = 1e-6;

/// What one cell says.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Point {
    /// Banks of the slice over tasks.
    pub banks_per_core: f64,
    /// What the neighbours do.
    pub attack: Attack,
    /// Time of an access over alone: shared banks, private banks.
    pub shared: f64,
    /// Private banks.
    pub private: f64,
    /// What private banks save, as a share of an access alone.
    pub saved: f64,
    /// Whether that is shown.
    pub shown: bool,
    /// The least that they may save (99 %).
    #[serde(default)]
    pub at_least: f64,
    /// The most (99 %).
    #[serde(default = "anything")]
    pub at_most: f64,
    /// Tasks beside the victim.
    #[serde(default)]
    pub neighbours: usize,
}

impl Point {
    /// What it says of the logarithm of what is saved: its variance. `None`: nothing.
    fn variance(&self) -> Option<f64> {
        let says = self.shown && self.at_least > 0.0 && self.at_most < f64::MAX;
        says.then(|| {
            ((self.at_most / self.at_least).ln() / (2.0 * SURE))
                .powi(2)
                .max(LEAST_VARIANCE)
        })
    }
}

fn anything() -> f64 {
    f64::MAX
}

/// Banks for each core: of few the tenths count.
fn number(banks: f64) -> String {
    match banks < 10.0 {
        true => format!("{:.1}", banks).trim_end_matches(".0").to_owned(),
        false => format!("{banks:.0}"),
    }
}

/// A saving beyond this, as a share of an access alone, is no upper end: co-runners on real
/// memory made one 3.9 times as long at most (`evidence/silicon.md`).
const SENSELESS: f64 = 10.0;

/// The line: saved = at_one * banks_per_core ^ -exponent.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Law {
    /// What is saved with one bank for each core.
    pub at_one: f64,
    /// How fast that falls.
    pub exponent: f64,
    /// Points it is drawn through.
    pub points: usize,
    /// Logarithm of the banks for each core where the line is surest.
    center: f64,
    /// Variance of what is saved there, as a logarithm, and of the exponent.
    variances: [f64; 2],
    /// Standard deviations that 99 of 100 cases lie within.
    #[serde(default = "sure")]
    within: f64,
}

fn sure() -> f64 {
    SURE
}

/// Points, line, and this machine.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Density {
    /// Slices, not page colours.
    pub points: Vec<Point>,
    /// Beside readers; none: too few points show an effect.
    pub law: Option<Law>,
    /// Banks of this machine for each of its processors; `None`: nobody knows.
    pub here: Option<f64>,
}

impl Density {
    /// Of the cells that were measured on a machine with so many banks and processors.
    #[must_use]
    pub fn of(cells: &[Cell], banks: Option<f64>, processors: usize) -> Self {
        let point = |cell: &Cell| Point {
            banks_per_core: cell.banks as f64 / (cell.neighbours + 1) as f64,
            attack: cell.attack,
            shared: cell.shared_slowdown(),
            private: cell.private_slowdown(),
            saved: cell.saved.ns.median / cell.alone.ns,
            shown: cell.saved.shown,
            at_least: cell.saved.ns.low / cell.alone.ns,
            at_most: cell.saved.ns.high / cell.alone.ns,
            neighbours: cell.neighbours,
        };
        let slices = cells.iter().filter(|cell| !cell.by_pages);
        let points: Vec<Point> = slices.map(point).collect();
        Self {
            law: Law::through(&points, Attack::Read),
            points,
            here: banks.map(|banks| banks / processors.max(1) as f64),
        }
    }

    /// What the line says that private banks save with so many banks for each core, as a share
    /// of an access alone; `None`: no law.
    #[must_use]
    pub fn fit(&self, banks_per_core: f64) -> Option<f64> {
        self.law.map(|law| law.expected(banks_per_core)[1])
    }

    /// What private banks are expected to save where all processors are busy, as a share
    /// of an access alone: low, middle, high; between low and high in 99 of 100 cases, and no
    /// more than a slice of as many banks beside readers allows. `None`: no law, or nobody knows
    /// how many banks there are.
    #[must_use]
    pub fn expected(&self) -> Option<[f64; 3]> {
        let here = self.here?;
        let law = self.law?.expected(here);
        let there = self.points_at(here);
        let there = there.filter(|point| point.attack == Attack::Read && !point.shown);
        let most = there.map(|point| point.at_most).fold(f64::MAX, f64::min);
        Some(law.map(|saved| saved.min(most)))
    }

    /// What private banks may save there at most beside co-runners that do more than read, whose
    /// law is not kept: by a fit of theirs, else by slices of no more banks for each core.
    /// `None`: nobody knows.
    #[must_use]
    pub fn most_of_writers(&self) -> Option<f64> {
        let here = self.here?;
        let most_of = |attack: Attack| {
            if let Some(law) = Law::through(&self.points, attack) {
                return Some(law.expected(here)[2]);
            }
            let points = self.points.iter().filter(|point| point.attack == attack);
            let most = points.clone().map(|point| point.neighbours).max();
            if most.is_none() {
                // Nobody tried.
                return Some(0.0);
            }
            let few = points.filter(|point| Some(point.neighbours) == most);
            let few = few.filter(|point| point.banks_per_core <= here);
            few.map(|point| point.at_most.max(0.0)).reduce(f64::min)
        };
        Some(most_of(Attack::Write)?.max(most_of(Attack::Both)?))
    }

    /// Neighbours at most; `None`: there are no points.
    #[must_use]
    pub fn most_neighbours(&self) -> Option<usize> {
        self.points.iter().map(|point| point.neighbours).max()
    }

    /// What that means here, in a sentence.
    #[must_use]
    pub fn verdict(&self) -> String {
        let Some(here) = self.here else {
            return "How many banks this machine has is not known, so slices don't say what private banks \
                    save in all of them."
                .to_owned();
        };
        let head = format!(
            "This machine has {} banks for each busy core when all its CPUs are busy.",
            number(here)
        );
        if let Some(point) = self.measured_at(here) {
            return format!(
                "{head} With as many for each core private banks save {:.1} % of an access beside {} ({:.1} \
                 to {:.1}, 99 %).",
                100.0 * point.saved,
                point.attack.neighbours(point.neighbours),
                100.0 * point.at_least,
                100.0 * point.at_most
            );
        }
        if let Some([low, middle, high]) = self.expected() {
            let points = self.law.map_or(0, |law| law.points);
            if high > SENSELESS {
                return format!(
                    "{head} A fit through {points} slices beside readers leaves open what private banks save \
                     there: its interval has no useful end (99 %)."
                );
            }
            return format!(
                "{head} By a fit through {} slices beside readers private banks save {:.1} % of an access \
                 there ({:.1} to {:.1}, 99 %).",
                points,
                100.0 * middle,
                100.0 * low,
                100.0 * high
            );
        }
        match self.nothing_by(here) {
            Some((banks, most)) => format!(
                "{head} In slices of {} for each core nothing is shown that private banks save: {} of an \
                 access alone (99 %).",
                number(banks),
                at_most(most)
            ),
            None => format!(
                "{head} Too few slices show an effect, or slices contradict each other: nobody knows what \
                 that means."
            ),
        }
    }

    /// What was measured with so many banks for each core beside the most neighbours, where it
    /// shows an effect.
    fn measured_at(&self, here: f64) -> Option<&Point> {
        let mut there = self.points_at(here);
        there.find(|point| point.shown && point.at_most < f64::MAX)
    }

    /// The points with so many banks for each core beside the most neighbours.
    fn points_at(&self, here: f64) -> impl Iterator<Item = &Point> {
        let most = self.most_neighbours();
        let is_there = move |point: &&Point| {
            Some(point.neighbours) == most && (point.banks_per_core / here - 1.0).abs() < NEAR
        };
        self.points.iter().filter(is_there)
    }

    /// The slices nearest to this machine, of no more banks for each core than it has, and the
    /// most that private banks may save there. `None`: there are none, or these or larger
    /// ones show an effect.
    fn nothing_by(&self, here: f64) -> Option<(f64, f64)> {
        let banks = |point: &&Point| point.banks_per_core;
        let most = self.most_neighbours();
        let points = self.points.iter();
        // Few neighbours hardly meet, however few banks there are for each.
        let points = points.filter(|point| Some(point.neighbours) == most);
        let few = points.clone().map(|point| point.banks_per_core);
        let most_banks = here * (1.0 + NEAR);
        let nearest = few.filter(|&banks| banks < most_banks).reduce(f64::max)?;
        let larger = points.filter(|point| banks(point) >= nearest);
        if larger.clone().any(|point| point.shown) {
            return None;
        }
        let most = larger.map(|point| point.at_most).fold(0.0, f64::max);
        (most < 1.0).then_some((nearest, most))
    }
}

impl Law {
    /// Through the points beside the most co-runners of this kind that show an effect. `None`: too
    /// few do, or the line promises more than another of them may save at most.
    fn through(points: &[Point], attack: Attack) -> Option<Self> {
        let of_kind = points.iter().filter(|point| point.attack == attack);
        let most = of_kind.clone().map(|point| point.neighbours).max()?;
        let beside_most = of_kind.filter(|point| point.neighbours == most);
        let logs: Vec<Log> = beside_most
            .clone()
            .filter(|point| point.saved > 0.0)
            .filter_map(|point| {
                Some(Log {
                    banks: point.banks_per_core.ln(),
                    saved: point.saved.ln(),
                    weight: point.variance()?.recip(),
                })
            })
            .collect();
        let ends = logs.iter().map(|log| log.banks);
        let span = ends.clone().fold(f64::MIN, f64::max) - ends.fold(f64::MAX, f64::min);
        if logs.len() < LEAST_POINTS || span < LEAST_SPAN.ln() {
            return None;
        }
        let law = Self::of(&logs);
        let mut without = beside_most.filter(|point| !point.shown);
        let is_denied = without.any(|point| law.expected(point.banks_per_core)[0] > point.at_most);
        Some(law).filter(|_| !is_denied)
    }

    /// What is saved with so many banks for each core: low, middle, high.
    fn expected(&self, here: f64) -> [f64; 3] {
        let middle = self.at_one * here.powf(-self.exponent);
        let [there, slope] = self.variances;
        let variance = there + slope * (here.ln() - self.center).powi(2);
        let off = (self.within * variance.sqrt()).exp();
        [middle / off, middle, middle * off]
    }

    /// Least squares, each point by its weight.
    fn of(logs: &[Log]) -> Self {
        let sum =
            |of: &dyn Fn(&Log) -> f64| logs.iter().map(|log| log.weight * of(log)).sum::<f64>();
        let weight = sum(&|_| 1.0);
        let (x, y) = (
            sum(&|log| log.banks) / weight,
            sum(&|log| log.saved) / weight,
        );
        let spread = sum(&|log| (log.banks - x).powi(2));
        let slope = sum(&|log| (log.banks - x) * (log.saved - y)) / spread;
        let off = sum(&|log| (log.saved - y - slope * (log.banks - x)).powi(2));
        // Points that lie further off than they should make the line less sure; how far that
        // is, few of them hardly tell.
        let freedom = logs.len() - 2;
        let off = (off / freedom as f64).sqrt();
        let student = STUDENT[freedom.clamp(1, STUDENT.len()) - 1];
        Self {
            within: (student * off).max(SURE),
            at_one: (y - slope * x).exp(),
            exponent: -slope,
            points: logs.len(),
            center: x,
            variances: [weight.recip(), spread.recip()],
        }
    }
}

/// The logarithms of a point, and one over the variance of what is saved.
struct Log {
    banks: f64,
    saved: f64,
    weight: f64,
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn point(banks_per_core: f64, saved: f64) -> Point {
        Point {
            banks_per_core,
            attack: Attack::Read,
            shared: 1.0 + saved,
            private: 1.0,
            saved,
            shown: true,
            at_least: 0.9 * saved,
            at_most: saved / 0.9,
            neighbours: 3,
        }
    }

    #[test]
    fn an_interval_without_a_useful_end_is_no_figure() {
        let points: Vec<Point> = [1.0, 2.0, 4.0].map(|x| point(x, 1.0 / x)).to_vec();
        let law = Law {
            variances: [60.0, 0.0],
            ..Law::through(&points, Attack::Read).unwrap()
        };
        let said = Density {
            points,
            law: Some(law),
            here: Some(64.0),
        }
        .verdict();
        assert!(
            said.contains("A fit through 3 slices beside readers leaves open"),
            "{said}"
        );
        assert!(!said.contains(" to "), "{said}");
    }

    #[test]
    fn a_power_is_found_and_too_few_points_are_none() {
        let power = |x: f64| 2.0 * x.powf(-1.5);
        let points: Vec<Point> = [1.0, 2.0, 4.0, 8.0].map(|x| point(x, power(x))).to_vec();
        let law = Law::through(&points, Attack::Read).unwrap();
        assert!((law.at_one - 2.0).abs() < 1e-9 && (law.exponent - 1.5).abs() < 1e-9);
        let here = Density {
            points: points.clone(),
            law: Some(law),
            here: Some(64.0),
        };
        assert!((here.expected().unwrap()[1] - power(64.0)).abs() < 1e-9);
        assert!(
            here.verdict().contains("fit through 4 slices"),
            "{}",
            here.verdict()
        );
        // A slice with as many banks for each core is better than a line.
        let measured = Density {
            here: Some(4.0),
            ..here.clone()
        };
        let said = measured.verdict();
        assert!(
            said.contains("With as many for each core private banks save 25.0 %")
                && !said.contains("fit"),
            "{said}"
        );
        // Others beside, or with an effect that is hardly shown, bend nothing.
        let mut more = points.clone();
        more.push(Point {
            neighbours: 1,
            ..point(2.0, 0.9)
        });
        more.push(Point {
            at_least: 1e-6,
            at_most: 0.9,
            ..point(8.0, 0.4)
        });
        let law = Law::through(&more, Attack::Read).unwrap();
        assert!((law.exponent - 1.5).abs() < 0.01, "{law:?}");
        assert!(Law::through(&points[..2], Attack::Read).is_none());
        let crowded: Vec<Point> = [1.0, 1.1, 1.2].map(|x| point(x, power(x))).to_vec();
        assert!(Law::through(&crowded, Attack::Read).is_none());
    }

    /// However far points lie off the line: of 1000 lines through four about 10 miss the truth.
    #[test]
    fn the_truth_lies_in_the_interval_in_99_of_100_cases() {
        use rand::{Rng, SeedableRng};
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(1);
        let mut normal = || -> f64 { (0..12).map(|_| rng.gen::<f64>()).sum::<f64>() - 6.0 };
        let mut missed = |tau: f64| {
            let sigma = 0.05;
            let mut misses = 0;
            for _ in 0..1000 {
                let points: Vec<Point> = [1.0, 2.0, 4.0, 8.0]
                    .map(|x: f64| {
                        let saved = (normal() * f64::hypot(sigma, tau)).exp() / x;
                        let off = (SURE * sigma).exp();
                        Point {
                            at_least: saved / off,
                            at_most: saved * off,
                            ..point(x, saved)
                        }
                    })
                    .to_vec();
                let here = Density {
                    law: Law::through(&points, Attack::Read),
                    points,
                    here: Some(32.0),
                };
                let [low, _, high] = here.expected().unwrap();
                misses += usize::from(!(low..=high).contains(&(1.0 / 32.0)));
            }
            misses
        };
        for tau in [0.0, 0.1, 0.2, 0.4] {
            let misses = missed(tau);
            assert!(misses <= 20, "{misses} of 1000 at {tau}");
        }
    }

    /// Slices beside few neighbours show nothing of what many save in as many banks for each.
    #[test]
    fn few_neighbours_without_an_effect_prove_nothing_of_many() {
        let of = |neighbours, shown| Point {
            neighbours,
            shown,
            at_most: if shown { 0.9 } else { 0.01 },
            ..point(8.0 / (neighbours + 1) as f64, if shown { 0.8 } else { 0.0 })
        };
        let said = Density {
            points: vec![of(1, false), of(3, true), of(7, true), of(15, true)],
            law: None,
            here: Some(10.0),
        }
        .verdict();
        assert!(said.contains("Too few slices"), "{said}");
    }

    /// Slices of 1/4 to 1 bank for each core show an effect, those of 2 and 4 none.
    fn cut_off(here: f64) -> Density {
        let shown = [(0.25, 0.9), (0.5, 0.8), (1.0, 0.711)].map(|(x, saved)| Point {
            at_least: saved - 0.02,
            at_most: saved + 0.02,
            ..point(x, saved)
        });
        let none = [2.0, 4.0].map(|x| Point {
            shown: false,
            at_least: -0.01,
            at_most: 0.015,
            ..point(x, 0.002)
        });
        let points = [&shown[..], &none[..]].concat();
        Density {
            law: Law::through(&points, Attack::Read),
            points,
            here: Some(here),
        }
    }

    /// A slice with as many banks for each core as the machine answers, not a line that it
    /// contradicts; nor does such a line speak of other machines.
    #[test]
    fn slices_without_an_effect_bound_what_a_fit_says() {
        for (here, words) in [
            (2.0, "slices of 2 for each core nothing is shown"),
            (1.995, "slices of 2 for each core nothing is shown"),
            (64.0, "slices of 4 for each core nothing is shown"),
        ] {
            let density = cut_off(here);
            let said = density.verdict();
            assert!(
                said.contains(words) && said.contains("at most 1.5 %"),
                "{said}"
            );
            assert!(
                density.expected().is_none() && !said.contains("By a fit"),
                "{said}"
            );
        }
        let between = cut_off(0.75).verdict();
        assert!(between.contains("contradict each other"), "{between}");
    }

    /// One that the line allows takes nothing from it but what is beyond the slice's own end.
    #[test]
    fn a_slice_that_shows_little_does_not_end_a_fit() {
        let mut points: Vec<Point> = [1.0, 2.0, 4.0].map(|x| point(x, 1.0 / x)).to_vec();
        points.push(Point {
            shown: false,
            at_least: -0.1,
            at_most: 0.125,
            ..point(8.0, 0.1)
        });
        let at = |here| {
            let law = Law::through(&points, Attack::Read);
            let points = points.clone();
            Density {
                points,
                law,
                here: Some(here),
            }
        };
        for here in [8.0, 16.0] {
            let said = at(here).verdict();
            assert!(said.contains("By a fit through 3 slices"), "{said}");
        }
        let [_, middle, high] = at(8.0).expected().unwrap();
        assert!(middle <= 0.125 && high <= 0.125, "{middle} {high}");
    }

    /// One small slice without an effect says nothing where larger ones have one.
    #[test]
    fn noise_in_a_small_slice_proves_nothing() {
        let none = |banks, most| Point {
            shown: false,
            at_most: most,
            ..point(banks, 0.0)
        };
        let of = |points: Vec<Point>, here| {
            let law = None;
            let here = Some(here);
            Density { points, law, here }.verdict()
        };
        let said = of(vec![none(0.5, 0.9), point(4.0, 0.3)], 16.0);
        assert!(said.contains("Too few slices"), "{said}");
        let said = of(vec![none(0.5, 0.9), none(4.0, 0.02)], 16.0);
        assert!(said.contains("slices of 4 for each core"), "{said}");
        assert!(said.contains("at most 2.0 %"), "{said}");
        let said = of(vec![none(0.5, 0.1)], 0.5);
        assert!(said.contains("has 0.5 banks"), "{said}");
    }
}
