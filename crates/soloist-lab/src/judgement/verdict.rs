//! One claim, judged.

use evalexpr::{ContextWithMutableVariables, HashMapContext, Value};
use serde::{Deserialize, Serialize};
use soloist_core::statistics::mean;

use super::interval::Estimate;
use crate::claims::expression::tree;
use crate::claims::{comparisons, Comparison};
use crate::measurements::{values, CaseResult};
use crate::spec::{Basis, Claim, ClaimKind, Over, Point, Scenario};

/// A figure holds when its whole interval is this near to the printed effect, as a
/// share of the effect.
pub const TOLERANCE: f64 = 0.15;
/// What becomes of a claim that needs an interval where one seed ran.
pub const ONE_SEED: &str = "not judged: one seed";
/// A figure has converged when half of the work gives the same to this share.
pub const CONVERGED: f64 = 0.03;

/// A claim, judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// In words.
    pub what: String,
    /// What its figure is worth.
    pub kind: ClaimKind,
    /// What the paper prints.
    pub theirs: Option<f64>,
    /// What came out; `None`: the expression could not be computed.
    pub ours: Option<Estimate>,
    /// Our effect over theirs: what lies beyond the figure of no effect.
    pub effect: Option<f64>,
    /// Does it hold? `None`: nothing to compare with, one seed only, or `error`.
    pub holds: Option<bool>,
    /// The figure by the first half of the work over the figure; `None`: it is
    /// not of times of tasks that end.
    pub half: Option<f64>,
    /// What else the papers print of it.
    pub contradicted: Option<String>,
    /// Unit.
    pub unit: String,
    /// Why it could not be computed.
    pub error: Option<String>,
}

impl Verdict {
    /// Does it count for or against the model?
    pub fn counts(&self) -> bool {
        self.contradicted.is_none() && self.kind.counts()
    }

    /// What its figure is worth, in a word.
    pub fn worth(&self) -> &'static str {
        match (self.kind, &self.contradicted) {
            (ClaimKind::Ablation, _) => "ablation",
            (ClaimKind::Own, _) => "own",
            (ClaimKind::Silicon, _) => "silicon",
            (_, Some(_)) => "contradicted",
            (ClaimKind::Fitted, _) => "fitted",
            (ClaimKind::Predicted, _) => "predicted",
            (ClaimKind::Order, _) => "order",
        }
    }

    /// Whether it holds, in a word.
    pub fn word(&self) -> &'static str {
        match (self.holds, &self.error) {
            (_, Some(_)) => "not judged",
            (Some(true), _) => "holds",
            (Some(false), _) => "misses",
            // With an interval an order would have been judged.
            (None, None) if self.theirs.is_none() && !(self.kind.orders() && self.is_alone()) => {
                "no figure"
            }
            (None, None) => ONE_SEED,
        }
    }

    /// It has no interval.
    fn is_alone(&self) -> bool {
        self.ours.is_none_or(|ours| ours.half.is_none())
    }

    /// Half of the work gave the same; `None`: it can't be said.
    pub fn converged(&self) -> Option<bool> {
        self.half.map(|h| (h - 1.0).abs() <= CONVERGED)
    }
}

/// Judges every claim of the scenario.
pub fn judge(scenario: &Scenario, results: &[CaseResult]) -> Vec<Verdict> {
    let seeds = results.iter().map(|c| c.runs.len()).min().unwrap_or(0);
    let without = |seed: usize| {
        let left: Vec<CaseResult> = results.iter().map(|c| c.without(seed)).collect();
        context(&left)
    };
    let halves: Option<Vec<CaseResult>> = results.iter().map(CaseResult::half).collect();
    let figures = Figures {
        all: context(results),
        without: (0..if seeds > 1 { seeds } else { 0 })
            .map(without)
            .collect(),
        half: halves.as_deref().map(context),
        sweep: scenario.points(),
    };
    let basis = scenario.experiment.basis;
    let claims = scenario.claims.iter();
    claims.map(|c| figures.verdict(c, basis)).collect()
}

fn context(results: &[CaseResult]) -> HashMapContext {
    let mut context = HashMapContext::new();
    for (name, value) in values(results) {
        // Names are identifiers, and `Scenario::cases` refuses those that would be equal.
        let _ = context.set_value(name, Value::Float(value));
    }
    context
}

/// All that expressions may be computed from.
struct Figures {
    all: HashMapContext,
    /// Without each of the seeds.
    without: Vec<HashMapContext>,
    /// By the first half of the work.
    half: Option<HashMapContext>,
    sweep: Vec<Point>,
}

type Computed = Result<f64, evalexpr::EvalexprError>;
type Evaluated = Result<Estimate, evalexpr::EvalexprError>;

impl Figures {
    /// `value` over all seeds, with its interval.
    fn estimate(&self, value: impl Fn(&HashMapContext) -> Computed) -> Evaluated {
        let without = self.without.iter();
        let without: Vec<f64> = without.map(&value).collect::<Result<_, _>>()?;
        Ok(Estimate::jackknife(value(&self.all)?, &without))
    }

    /// The claim's own value.
    fn ours(&self, claim: &Claim, context: &HashMapContext) -> Computed {
        evaluate(&claim.ours, claim.over, &self.sweep, context)
    }

    /// Whether all of `comparisons`, which may name `ours`, hold with their intervals apart.
    fn order(
        &self,
        comparisons: &[Comparison],
        claim: &Claim,
    ) -> Result<Option<bool>, evalexpr::EvalexprError> {
        let value = |text: &str, context: &HashMapContext| {
            let tree = tree(text)?;
            if tree.iter_variable_identifiers().all(|word| word != "ours") {
                return tree.eval_number_with_context(context);
            }
            let mut context = context.clone();
            let ours = self.ours(claim, &context)?;
            context.set_value("ours".to_owned(), Value::Float(ours))?;
            tree.eval_number_with_context(&context)
        };
        let side = |text: &str| self.estimate(|context| value(text, context));
        let mut all = Some(true);
        for c in comparisons {
            let (less, more) = (side(&c.less)?, side(&c.more)?);
            let holds = if c.equal {
                less.at_most(more)
            } else {
                less.below(more)
            };
            all = match (all, holds) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), Some(true)) => Some(true),
                _ => None,
            };
        }
        Ok(all)
    }

    /// Why a figure of several seeds can't be judged.
    fn not_judged(&self, ours: Estimate) -> Option<String> {
        let seeds = self.without.len();
        match (seeds, ours.value.is_finite(), ours.half) {
            (0, ..) | (_, true, Some(_)) => None,
            (_, false, _) => Some(format!("the figure is {}", ours.value)),
            (_, true, None) => Some(format!("{seeds} seeds are too few for its interval")),
        }
    }

    fn verdict(&self, claim: &Claim, basis: Basis) -> Verdict {
        let ours = self.estimate(|context| self.ours(claim, context));
        let mut error = match &ours {
            Ok(ours) => self.not_judged(*ours),
            Err(error) => Some(error.to_string()),
        };
        let ours = ours.ok().filter(|e| e.value.is_finite());
        let from = claim.neutral();
        let effect = ours
            .zip(claim.theirs)
            .map(|(o, t)| (o.value - from) / (t - from));
        let holds = match &claim.holds {
            Some(text) => {
                let held = comparisons(text)
                    .and_then(|c| self.order(&c, claim).map_err(|e| e.to_string()));
                error = error.or(held.as_ref().err().cloned());
                held.ok().flatten()
            }
            None => ours.zip(claim.theirs).and_then(|(o, t)| {
                let allowed = claim.margin.unwrap_or(TOLERANCE * (t - from).abs());
                o.within(t, allowed)
            }),
        };
        let half = self.half.as_ref().zip(ours).and_then(|(context, ours)| {
            let half = self.ours(claim, context).ok()?;
            let ratio = half / ours.value;
            ratio.is_finite().then_some(ratio)
        });
        Verdict {
            what: claim.what.clone(),
            kind: claim.kind(basis),
            theirs: claim.theirs,
            ours,
            effect: effect.filter(|e| e.is_finite()),
            holds: holds.filter(|_| error.is_none()),
            half,
            contradicted: claim.contradicted.clone(),
            unit: claim.unit.clone(),
            error,
        }
    }
}

/// An expression's value, or what is taken of its values over the sweep.
fn evaluate(text: &str, over: Option<Over>, sweep: &[Point], context: &HashMapContext) -> Computed {
    let value = |text: &str| tree(text)?.eval_number_with_context(context);
    let Some(over) = over else {
        return value(text);
    };
    let values = sweep
        .iter()
        .map(|v| value(&text.replace('$', &v.to_string())))
        .collect::<Result<Vec<f64>, _>>()?;
    Ok(match over {
        Over::Mean => mean(&values),
        Over::Geomean => mean(&values.iter().map(|v| v.ln()).collect::<Vec<_>>()).exp(),
        Over::Min => values.iter().copied().fold(f64::INFINITY, f64::min),
        Over::Max => values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use crate::judgement::Totals;
    use crate::measurements::{Run, TaskResult};

    /// A run for each time, a task a run.
    fn result(case: &str, times: &[f64]) -> CaseResult {
        let run = |(seed, &time_ns): (usize, &f64)| Run {
            seed: seed as u64,
            tasks: vec![TaskResult {
                name: "t".into(),
                cpu: 0,
                time_ns,
                half_ns: Some(time_ns / 2.0),
                accesses: 10,
                idle_ns: 0.0,
                instructions: 100,
                memory_bytes: 640,
                whole_ns: time_ns,
                spilled: 0,
                remote: 0.0,
                p99_ns: 0.0,
                waits: None,
                regulated: None,
            }],
        };
        CaseResult {
            case: case.into(),
            policy: case.into(),
            value: None,
            others: Vec::new(),
            runs: times.iter().enumerate().map(run).collect(),
        }
    }

    fn verdict(results: &[CaseResult], claim: &str) -> Verdict {
        let text = format!(
            "policies = [\"buddy\"]\n[experiment]\nid = \"x\"\ntitle = \"x\"\nmachine = \"m\"\n\
             [[task]]\nname = \"t\"\nkind = \"latency\"\ncpus = \"0\"\nbytes = 1\nwork = 1\n\
             [[claim]]\nwhat = \"w\"\n{claim}\n"
        );
        let scenario = Scenario::parse(&text, "x").unwrap();
        judge(&scenario, results).remove(0)
    }

    #[test]
    fn tolerance_is_on_the_effect() {
        let results = [
            result("a", &[119.6, 119.6, 119.6]),
            result("b", &[100.0, 100.0, 100.0]),
        ];
        let ratio = "ours = \"a_t_time / b_t_time\"\ntheirs = ";
        // 1.196 for 1.392: a ratio within 15 %, half of the gain.
        let v = verdict(&results, &format!("{ratio}1.392"));
        assert_eq!(v.holds, Some(false));
        assert!((v.effect.unwrap() - 0.5).abs() < 1e-9, "{v:?}");
        assert_eq!(verdict(&results, &format!("{ratio}1.22")).holds, Some(true));
        let v = verdict(&results, &format!("{ratio}1.0\nmargin = 0.2"));
        assert_eq!((v.holds, v.kind), (Some(true), ClaimKind::Order));
        let gain = "ours = \"100 * (1 - b_t_time / a_t_time)\"\ntheirs = 16.4\nunit = \"%\"";
        assert_eq!(verdict(&results, gain).holds, Some(true));
        let v = verdict(&results, "ours = \"c_t_time\"\ntheirs = 2.0");
        assert!(v.error.is_some() && v.holds.is_none());
    }

    /// Of two runs a deviation has no interval, and why is said.
    #[test]
    fn what_cannot_be_judged_says_why() {
        let claim = |ours: &str, times: &[f64]| {
            let ours = format!("ours = \"{ours}\"\ntheirs = 5.0\nunit = \"ms\"");
            verdict(&[result("a", times)], &ours)
        };
        let one = claim("a_t_time_std", &[1e6]);
        assert_eq!((one.word(), one.ours), (ONE_SEED, None));
        for suffix in ["std", "runstd"] {
            let two = claim(&format!("a_t_time_{suffix}"), &[1e6, 11e6]);
            let why = "2 seeds are too few for its interval";
            assert_eq!(two.error.as_deref(), Some(why), "{suffix}");
            assert!(two.ours.is_some_and(|ours| ours.half.is_none()));
            let three = claim(&format!("a_t_time_{suffix}"), &[1e6, 6e6, 11e6]);
            assert!(three.ours.is_some_and(|ours| ours.half > Some(0.0)));
            assert_eq!((three.holds, three.error), (Some(false), None));
        }
        let infinite = claim("a_t_time / 0", &[1e6, 2e6]);
        assert_eq!(infinite.error.as_deref(), Some("the figure is inf"));
        assert_eq!((infinite.word(), infinite.holds), ("not judged", None));
    }

    /// An order beside a figure that has no interval is not judged either, and counts so.
    #[test]
    fn what_is_not_judged_does_not_hold() {
        let order = "ours = \"a_t_time_std\"\nunit = \"ms\"\nholds = \"a_t_time < b_t_time\"";
        let results = [result("a", &[1e6, 1.1e6]), result("b", &[5e6, 5.1e6])];
        let v = verdict(&results, order);
        assert_eq!((v.word(), v.holds), ("not judged", None));
        let order = Totals::of([&v]).order;
        assert_eq!((order.hold, order.of), (0, 1));
    }

    /// 1.2 on average for 1.2, but seeds from 1.1 to 1.3 show nothing; and one seed
    /// shows only that a figure is far off.
    #[test]
    fn a_figure_holds_with_its_interval() {
        let b = || result("b", &[100.0, 100.0, 100.0]);
        let ratio = "ours = \"a_t_time / b_t_time\"\ntheirs = 1.2";
        let holds = |a: &[f64], b| verdict(&[result("a", a), b], ratio).holds;
        assert_eq!(holds(&[119.0, 120.0, 121.0], b()), Some(true));
        assert_eq!(holds(&[110.0, 120.0, 130.0], b()), Some(false));
        assert_eq!(holds(&[120.0], result("b", &[100.0])), None);
        assert_eq!(holds(&[130.0], result("b", &[100.0])), Some(false));
    }

    #[test]
    fn an_order_holds_only_if_intervals_are_apart() {
        let order = "ours = \"b_t_time / a_t_time\"\nholds = \"a_t_time < b_t_time\"";
        let holds = |a: &[f64], b: &[f64]| verdict(&[result("a", a), result("b", b)], order).holds;
        assert_eq!(
            holds(&[99.0, 100.0, 101.0], &[119.0, 120.0, 121.0]),
            Some(true)
        );
        assert_eq!(
            holds(&[90.0, 100.0, 110.0], &[110.0, 120.0, 130.0]),
            Some(false)
        );
        assert_eq!(holds(&[100.0], &[120.0]), None, "one seed says nothing");
    }

    /// `holds` may compute with the claim's own value, which has its interval there, too.
    #[test]
    fn an_order_computes_with_ours() {
        let results = [result("a", &[99.0, 100.0, 101.0]), result("b", &[50.0; 3])];
        for (holds, comes_out) in [
            ("2 * ours > 3.9", true),
            ("2 * ours > 4", false),
            ("ours - 1 < 1.1 && 1 < ours", true),
        ] {
            let claim = format!("ours = \"a_t_time / b_t_time\"\nholds = \"{holds}\"");
            let v = verdict(&results, &claim);
            assert_eq!((v.holds, v.error), (Some(comes_out), None), "{holds}");
        }
    }

    #[test]
    fn half_of_the_work_says_whether_a_figure_has_converged() {
        let steady = [result("a", &[100.0, 101.0])];
        let v = verdict(
            &steady,
            "ours = \"a_t_latency\"\ntheirs = 1.0\nunit = \"ns\"",
        );
        assert_eq!(v.converged(), Some(true), "{v:?}");
        let mut slower = steady;
        slower[0].runs[0].tasks[0].half_ns = Some(30.0);
        let v = verdict(
            &slower,
            "ours = \"a_t_latency\"\ntheirs = 1.0\nunit = \"ns\"",
        );
        assert_eq!(v.converged(), Some(false), "{v:?}");
        let v = verdict(&slower, "ours = \"a_t_remote\"\ntheirs = 1.0\nunit = \"%\"");
        assert_eq!(v.converged(), None, "{v:?}");
    }
}
