//! One entry of a profile: where it holds, what won, and the measurements behind it.

use super::Key;
use crate::copy::kernels::Isa;
use crate::copy::tuning::{Knob, Origin, Tuning, Value};
use serde::{Deserialize, Serialize};

/// What one tuning run found on one machine at one SIMD level.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// What it holds for.
    pub key: Key,
    /// When it was found.
    pub created: String,
    /// The command that found it.
    pub command: String,
    /// The values that replace defaults.
    pub winners: Vec<Winner>,
    /// Everything that was measured, winners and losers.
    #[serde(default)]
    pub measurements: Vec<Measurement>,
}

impl Entry {
    /// What of the entry no machine can use: its values, a sentence each.
    ///
    /// A value that only another version knows is none of them where the entry is of another version.
    ///
    /// # Errors
    ///
    /// Why nothing of the entry can ever be used.
    pub fn check(&self) -> Result<Vec<String>, String> {
        Isa::from_name(&self.key.isa).map_err(|error| format!("is of no SIMD level: {error}"))?;
        if self.key.page_bytes == 0 || !self.key.page_bytes.is_power_of_two() {
            return Err(format!("has pages of {} bytes, which no machine has", self.key.page_bytes));
        }
        let foreign = self.key.version != env!("CARGO_PKG_VERSION");
        let mut tuning = Tuning::for_caches(0, 0, 0);
        let known = |winner: &&Winner| !foreign || Knob::from_name(&winner.knob).is_some();
        let faults: Vec<String> =
            self.winners.iter().filter(known).filter_map(|winner| winner.put(&mut tuning).err()).collect();
        match faults.first() {
            Some(first) if faults.len() == self.winners.len() => {
                Err(format!("holds no value to use: {first}"))
            }
            _ => Ok(faults),
        }
    }
}

/// A value that replaces a default.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Winner {
    /// Name of the knob.
    pub knob: String,
    /// Bytes of an element, for knobs that have a value per element size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub element_bytes: Option<usize>,
    /// The value, in the unit that the knob's name ends in.
    pub value: usize,
    /// What it replaces.
    pub replaces: usize,
    /// Time with the replaced value over time with this one, on the cases that confirmed it.
    pub gain: f64,
    /// Gains below this one are noise on this machine: the largest seen between equal values.
    pub noise: f64,
}

impl Winner {
    /// Puts the value into `tuning`, or says why not.
    pub(super) fn put(&self, tuning: &mut Tuning) -> Result<(), String> {
        let Some(knob) = Knob::from_name(&self.knob) else {
            return Err(format!("value {:?} is not known to this version", self.knob));
        };
        let value = Value::new(self.value, Origin::Profile);
        tuning.set(knob, self.element_bytes, value).map_err(|error| error.to_string())
    }
}

/// One comparison on one case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// What was compared: the knob.
    pub knob: String,
    /// Bytes of an element, for knobs that have a value per element size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub element_bytes: Option<usize>,
    /// The values tried: one number a knob of the group.
    pub values: Vec<usize>,
    /// The case that was run.
    pub case: String,
    /// Whether this is a confirmation in reverse order.
    pub confirms: bool,
    /// Nanoseconds with the values tried.
    pub samples_ns: Vec<f64>,
    /// Nanoseconds with the current choice, taken in turn.
    pub current_samples_ns: Vec<f64>,
}
