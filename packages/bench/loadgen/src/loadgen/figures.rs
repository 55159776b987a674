//! The figures of an answer: what each I/O thread has of them, and what that is together.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::latencies::Latencies;

/// Its kind decides how the figures of several threads become one.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum Figure {
    Sum(u64),
    Least(Option<u64>),
    Most(Option<u64>),
    /// The highest counts.
    Share(f64),
    /// Sums by name.
    Counts(BTreeMap<String, u64>),
    /// `null` when nothing was recorded.
    Latencies(Latencies),
    /// `null` when nothing was counted.
    #[serde(serialize_with = "null_when_empty")]
    Group(Figures),
    /// One entry per thread.
    List(Vec<Value>),
}

/// Figures by the names that they have in the answer.
#[derive(Default, Serialize)]
#[serde(transparent)]
pub(crate) struct Figures(BTreeMap<&'static str, Figure>);

impl<const N: usize> From<[(&'static str, Figure); N]> for Figures {
    fn from(figures: [(&'static str, Figure); N]) -> Self {
        Self(BTreeMap::from(figures))
    }
}

impl Figures {
    pub(crate) fn insert(&mut self, name: &'static str, figure: Figure) {
        self.0.insert(name, figure);
    }

    /// Adds the figures of another thread.
    pub(crate) fn merge(&mut self, other: Self) {
        for (name, part) in other.0 {
            match self.0.get_mut(name) {
                Some(figure) => figure.merge(part),
                None => self.insert(name, part),
            }
        }
    }

    fn is_empty(&self) -> bool {
        self.0.values().all(|figure| match figure {
            Figure::Sum(count) => *count == 0,
            Figure::Counts(counts) => counts.is_empty(),
            _ => false,
        })
    }
}

impl Figure {
    pub(crate) fn counts<K: ToString>(counts: impl IntoIterator<Item = (K, u64)>) -> Self {
        Self::Counts(counts.into_iter().map(|(name, count)| (name.to_string(), count)).collect())
    }

    fn merge(&mut self, other: Self) {
        match (self, other) {
            (Self::Sum(all), Self::Sum(part)) => *all += part,
            (Self::Least(all), Self::Least(part)) => *all = [*all, part].into_iter().flatten().min(),
            (Self::Most(all), Self::Most(part)) => *all = (*all).max(part),
            (Self::Share(all), Self::Share(part)) => *all = all.max(part),
            (Self::Counts(all), Self::Counts(part)) => {
                part.into_iter().for_each(|(name, count)| *all.entry(name).or_default() += count);
            }
            (Self::Latencies(all), Self::Latencies(part)) => all.merge(&part),
            (Self::Group(all), Self::Group(part)) => all.merge(part),
            (Self::List(all), Self::List(part)) => all.extend(part),
            // Threads name figures of one kind alike.
            _ => {}
        }
    }
}

fn null_when_empty<S: Serializer>(figures: &Figures, serializer: S) -> Result<S::Ok, S::Error> {
    (!figures.is_empty()).then_some(figures).serialize(serializer)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn part(count: u64, least: Option<u64>, name: &str) -> Figures {
        let mut latencies = Latencies::default();
        latencies.record(count);
        Figures::from([
            ("sum", Figure::Sum(count)),
            ("least", Figure::Least(least)),
            ("most", Figure::Most(least)),
            ("share", Figure::Share(count as f64 / 4.0)),
            ("counts", Figure::counts([(name, count), ("both", 1)])),
            ("latencyUs", Figure::Latencies(latencies)),
            ("group", Figure::Group(Figures::from([("inner", Figure::Sum(count))]))),
            ("nothing", Figure::Group(Figures::from([("inner", Figure::Sum(0))]))),
            ("list", Figure::List(vec![json!(name)])),
        ])
    }

    #[test]
    fn the_figures_of_several_threads_become_one_by_their_kind() {
        let mut all = Figures::default();
        [part(1, None, "a"), part(2, Some(7), "b"), part(3, Some(5), "a")].into_iter().for_each(|part| all.merge(part));
        let mut body = json!(all);
        assert_eq!(body["latencyUs"].take()["count"], 3);
        let expected = json!({
            "sum": 6, "least": 5, "most": 7, "share": 0.75, "counts": { "a": 4, "b": 2, "both": 3 }, "latencyUs": null,
            "group": { "inner": 6 }, "nothing": null, "list": ["a", "b", "a"],
        });
        assert_eq!(body, expected);
    }
}
