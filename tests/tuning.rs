//! Any tuning values in their range give right copies: a profile can make a copy slow, never wrong.

use proptest::prelude::*;
use restride::copy::tuning::{ELEMENT_SIZES, Knob, Origin, Value};
use restride::{BytesView, BytesViewMut, CopyOptions, Layout, Tuning, copy_bytes};

/// Positions from one end of a knob's range to the other, by powers of two and between.
fn value(knob: Knob, at: f64) -> usize {
    let (low, high) = ((*knob.range().start()).max(1) as f64, (*knob.range().end()).min(1 << 30) as f64);
    ((low * (high / low).powf(at)) as usize).clamp(*knob.range().start(), *knob.range().end())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]
    #[test]
    fn any_values_give_right_copies(
        at in prop::collection::vec(0.0f64..=1.0, Knob::ALL.len()),
        size in prop_oneof![Just(1usize), Just(2), Just(4), Just(8), Just(16), Just(3), Just(12), Just(24)],
        view in prop_oneof![
            Just((vec![130usize, 97], ".T")),
            Just((vec![7, 200, 33], ".permute(2, 0, 1)")),
            Just((vec![64, 64, 8], ".permute(1, 0, 2)")),
            Just((vec![90, 90, 3], ".permute(2, 0, 1)")),
            Just((vec![3, 90, 90], ".permute(1, 2, 0)")),
            Just((vec![256, 256], "[::-1, 1:200].T")),
            Just((vec![1024, 20], ".mT")),
            Just((vec![100, 300], "[:, ::3]")),
            Just((vec![40, 50], ".pad((1, 2), (3, 4)).T")),
        ],
        streaming in prop_oneof![Just(None), Just(Some(true)), Just(Some(false))],
        misaligned in 0usize..70,
        threads in 1usize..3,
    ) {
        let mut tuning = Tuning::for_caches(48 << 10, 2 << 20, 0);
        for (knob, at) in Knob::ALL.into_iter().zip(at) {
            tuning.set(knob, None, Value::new(value(knob, at), Origin::Caller)).unwrap();
        }
        let mut options = CopyOptions::default().tuning(tuning).threads(threads);
        if let Some(streaming) = streaming {
            options = options.streaming(streaming);
        }
        let (shape, expression) = view;
        let base = Layout::row_major(&shape).unwrap();
        let layout = base.apply(expression).unwrap();
        let data: Vec<u8> = (0..base.numel() * size).map(|i| (i * 31 + i / 251) as u8).collect();
        let dst = Layout::row_major(layout.shape()).unwrap();
        let bytes = dst.numel() * size;
        let mut out = vec![0xA5u8; bytes + 128];
        let start = out.as_ptr().align_offset(64) + misaligned;
        let start = start.min(128);
        let src = BytesView::new(&data, layout.clone(), size).unwrap();
        let mut view = BytesViewMut::new(&mut out[start..start + bytes], dst, size).unwrap();
        copy_bytes(&src, &mut view, &options).unwrap();
        for k in 0..layout.numel() {
            let got = &out[start + k * size..][..size];
            match layout.view_at(k).unwrap() {
                Some(index) => prop_assert_eq!(got, &data[index * size..][..size], "position {}", k),
                None => prop_assert!(got.iter().all(|&byte| byte == 0), "padding at {}", k),
            }
        }
        prop_assert!(out[..start].iter().chain(&out[start + bytes..]).all(|&byte| byte == 0xA5));
    }
}

#[test]
fn every_size_has_its_own_value() {
    let mut tuning = Tuning::for_caches(48 << 10, 2 << 20, 0);
    for (k, size) in ELEMENT_SIZES.into_iter().enumerate() {
        tuning.set(Knob::TileSrc, Some(size), Value::new(64 << k, Origin::Profile)).unwrap();
    }
    for (k, size) in ELEMENT_SIZES.into_iter().enumerate() {
        assert_eq!(tuning.tile_src_bytes.at(size), Value::new(64 << k, Origin::Profile));
    }
    assert!(tuning.set(Knob::ParallelFrom, Some(4), Value::new(1 << 20, Origin::Caller)).is_err());
}

#[test]
fn every_knob_decides_some_plan() {
    let base = Tuning::for_caches(48 << 10, 2 << 20, 0);
    let best = restride::Isa::available()[0];
    let plan = |tuning: &Tuning, shape: &[usize], expression: &str, size: usize| {
        let source = Layout::row_major(shape).unwrap().apply(expression).unwrap();
        let dst = Layout::row_major(source.shape()).unwrap();
        let options = CopyOptions::default().tuning(*tuning).isa(best).threads(2);
        restride::Plan::new(&source, &dst, size, &options).unwrap()
    };
    for (knob, value, shape, expression, size) in [
        (Knob::StreamingFrom, 1 << 30, &[2048, 2048][..], ".T", 4),
        (Knob::StreamRowsFrom, 1 << 30, &[2000, 2000], "[:, 1:]", 4),
        (Knob::ParallelFrom, 1 << 30, &[2048, 2048], ".T", 4),
        (Knob::TileSrc, 1024, &[2048, 2048], ".T", 4),
        (Knob::TileDst, 512, &[2048, 2048], ".T", 4),
        (Knob::StagedSrc, 512, &[1001, 1001], ".T", 6),
        (Knob::StagedDst, 512, &[1001, 1001], ".T", 6),
        (Knob::RowTile, 64 << 10, &[1000, 100], "[:, ::-1]", 4),
        (Knob::BlockDst, 2048, &[2048, 2048], ".T", 4),
        (Knob::SlideFrom, 1 << 40, &[2047, 2047], ".T", 4),
        (Knob::UnstagedRowsFrom, 1 << 40, &[2000, 2000], "[:, 1:]", 4),
        (Knob::TileAhead, 512, &[2048, 2048], ".T", 4),
        (Knob::RowAhead, 512, &[2000, 2000], "[:, 1:]", 4),
        (Knob::Part, 1 << 20, &[2048, 2048], ".T", 4),
    ] {
        // Levels without byte permutes neither slide rows nor ask for the source of a transpose.
        if best.name() != "avx512" && matches!(knob, Knob::SlideFrom | Knob::TileAhead) {
            continue;
        }
        let mut tuning = base;
        tuning.set(knob, None, Value::new(value, Origin::Caller)).unwrap();
        let (before, after) = (plan(&base, shape, expression, size), plan(&tuning, shape, expression, size));
        assert_ne!(before, after, "{} = {value}: {before}", knob.name());
        assert_eq!(before.strategy(), after.strategy());
    }
}
