//! Which instruction sets there are, which one is used, and the `RESTRIDE_ISA` override.

use super::LEVELS;
use crate::Error;
use std::fmt;
use std::sync::OnceLock;

/// An instruction-set level of the kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Isa {
    /// Portable Rust, everywhere.
    Scalar,
    /// 128-bit vectors of every x86-64.
    Sse2,
    /// 256-bit vectors of x86-64.
    Avx2,
    /// 512-bit vectors of x86-64 with byte permutes (F, BW, VL, DQ and VBMI).
    Avx512,
    /// 128-bit vectors of AArch64.
    Neon,
}

impl Isa {
    /// The name that `RESTRIDE_ISA` and every report use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Scalar => "scalar",
            Self::Sse2 => "sse2",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
            Self::Neon => "neon",
        }
    }

    /// The level of that name.
    ///
    /// # Errors
    /// `Isa` when there is no such level.
    ///
    /// ```
    /// use restride::Isa;
    /// assert_eq!(Isa::from_name("avx2").unwrap(), Isa::Avx2);
    /// assert!(Isa::from_name("mmx").is_err());
    /// ```
    pub fn from_name(name: &str) -> Result<Self, Error> {
        [Self::Scalar, Self::Sse2, Self::Avx2, Self::Avx512, Self::Neon]
            .into_iter()
            .find(|isa| isa.name() == name)
            .ok_or_else(|| Error::Isa {
                reason: format!(
                    "there is no instruction-set level {name:?}: use scalar, sse2, avx2, avx512 or neon"
                ),
            })
    }

    /// The levels that this CPU runs, best first.
    pub fn available() -> Vec<Self> {
        LEVELS.iter().filter(|level| (level.present)()).map(|level| level.isa).collect()
    }

    /// Whether this CPU runs this level.
    pub fn is_available(self) -> bool {
        LEVELS.iter().any(|level| level.isa == self && (level.present)())
    }

    /// The level in use: the best available, or the one that `RESTRIDE_ISA` names.
    ///
    /// # Errors
    /// `Isa` when `RESTRIDE_ISA` names an unknown level or one that this CPU lacks.
    pub fn active() -> Result<Self, Error> {
        static ACTIVE: OnceLock<Result<Isa, Error>> = OnceLock::new();
        ACTIVE
            .get_or_init(|| match std::env::var("RESTRIDE_ISA") {
                Ok(name) if !name.is_empty() => {
                    Self::from_name(&name).and_then(|isa| isa.require("RESTRIDE_ISA asks for"))
                }
                _ => Ok(Self::best()),
            })
            .clone()
    }

    /// This level, or the reason why this CPU cannot run it.
    pub(crate) fn require(self, who: &str) -> Result<Self, Error> {
        if self.is_available() {
            return Ok(self);
        }
        let names: Vec<_> = Self::available().into_iter().map(Self::name).collect();
        Err(Error::Isa {
            reason: format!("{who} {self}, which this CPU lacks: it runs {}", names.join(", ")),
        })
    }

    /// Whether rows that do not start on a line can be streamed without staging.
    pub(crate) fn slides(self) -> bool {
        self == Self::Avx512
    }

    fn best() -> Self {
        LEVELS.iter().find(|level| (level.present)()).map_or(Self::Scalar, |level| level.isa)
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalar_is_always_there_and_last() {
        assert_eq!(Isa::available().last(), Some(&Isa::Scalar));
        assert!(Isa::Scalar.require("test").is_ok());
    }

    #[test]
    fn names_go_there_and_back() {
        for isa in [Isa::Scalar, Isa::Sse2, Isa::Avx2, Isa::Avx512, Isa::Neon] {
            assert_eq!(Isa::from_name(isa.name()).unwrap(), isa);
        }
    }

    #[test]
    fn a_level_of_another_machine_is_refused_with_a_sentence() {
        let foreign = if cfg!(target_arch = "x86_64") { Isa::Neon } else { Isa::Avx512 };
        let error = foreign.require("RESTRIDE_ISA asks for").unwrap_err();
        assert_eq!(error.kind(), "isa");
        assert!(error.to_string().contains("which this CPU lacks"));
    }
}
