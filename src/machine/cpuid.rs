//! The second source: what the CPUID instruction says, which Miri does not run.

use super::topology::CacheLevel;

/// Vendor, family, model and stepping, and the name on the lid.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Identity {
    pub vendor: Option<String>,
    pub family: Option<u32>,
    pub model: Option<u32>,
    pub stepping: Option<u32>,
    pub brand: Option<String>,
}

#[cfg(all(any(target_arch = "x86", target_arch = "x86_64"), not(miri)))]
mod x86 {
    use super::super::topology::{CacheKind, CacheLevel, Source};
    use super::Identity;
    use raw_cpuid::{CacheType, CpuId, Hypervisor};

    pub(super) fn caches() -> Vec<CacheLevel> {
        let positive = |n: usize| (n > 0).then_some(n);
        CpuId::new()
            .get_cache_parameters()
            .into_iter()
            .flatten()
            .filter_map(|cache| {
                let kind = match cache.cache_type() {
                    CacheType::Data => CacheKind::Data,
                    CacheType::Instruction => CacheKind::Instruction,
                    CacheType::Unified => CacheKind::Unified,
                    CacheType::Null | CacheType::Reserved => return None,
                };
                let (ways, line, sets) = (cache.associativity(), cache.coherency_line_size(), cache.sets());
                let bytes = ways
                    .checked_mul(cache.physical_line_partitions())
                    .and_then(|n| n.checked_mul(line))
                    .and_then(|n| n.checked_mul(sets));
                // How many CPUs share it is not taken from here: the instruction counts reserved
                // identifiers, not CPUs that exist.
                let mut level = CacheLevel::unknown(cache.level(), kind, Source::Cpuid);
                level.bytes = bytes.and_then(positive);
                level.ways = positive(ways);
                level.line_bytes = positive(line);
                level.sets = positive(sets);
                (level.level > 0).then_some(level)
            })
            .collect()
    }

    pub(super) fn hypervisor() -> Option<String> {
        let cpuid = CpuId::new();
        if !cpuid.get_feature_info().is_some_and(|info| info.has_hypervisor()) {
            return None;
        }
        let name = match cpuid.get_hypervisor_info().map(|info| info.identify()) {
            Some(Hypervisor::Xen) => "Xen",
            Some(Hypervisor::VMware) => "VMware",
            Some(Hypervisor::HyperV) => "Hyper-V",
            Some(Hypervisor::KVM) => "KVM",
            Some(Hypervisor::QEMU) => "QEMU",
            Some(Hypervisor::Bhyve) => "bhyve",
            Some(Hypervisor::QNX) => "QNX",
            Some(Hypervisor::ACRN) => "ACRN",
            Some(Hypervisor::Unknown(..)) | None => "unnamed",
        };
        Some(name.to_owned())
    }

    pub(super) fn identity() -> Identity {
        let cpuid = CpuId::new();
        let info = cpuid.get_feature_info();
        let clean = |text: &str| {
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            (!text.is_empty()).then_some(text)
        };
        Identity {
            vendor: cpuid.get_vendor_info().and_then(|vendor| clean(vendor.as_str())),
            family: info.as_ref().map(|info| u32::from(info.family_id())),
            model: info.as_ref().map(|info| u32::from(info.model_id())),
            stepping: info.as_ref().map(|info| u32::from(info.stepping_id())),
            brand: cpuid.get_processor_brand_string().and_then(|brand| clean(brand.as_str())),
        }
    }
}

/// The caches of the CPU that runs this thread; empty where the instruction does not exist.
pub(crate) fn caches() -> Vec<CacheLevel> {
    #[cfg(all(any(target_arch = "x86", target_arch = "x86_64"), not(miri)))]
    return x86::caches();
    #[cfg(not(all(any(target_arch = "x86", target_arch = "x86_64"), not(miri))))]
    Vec::new()
}

/// The hypervisor's name; `None` where there is none or nothing can be said.
pub(crate) fn hypervisor() -> Option<String> {
    #[cfg(all(any(target_arch = "x86", target_arch = "x86_64"), not(miri)))]
    return x86::hypervisor();
    #[cfg(not(all(any(target_arch = "x86", target_arch = "x86_64"), not(miri))))]
    None
}

/// Who made the CPU and which one it is.
pub(crate) fn identity() -> Identity {
    #[cfg(all(any(target_arch = "x86", target_arch = "x86_64"), not(miri)))]
    return x86::identity();
    #[cfg(not(all(any(target_arch = "x86", target_arch = "x86_64"), not(miri))))]
    Identity::default()
}
