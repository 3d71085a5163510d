//! Any text as the layout of a striped data set: it is refused, or its stripes hold all its bytes.

use std::path::Path;

use leadline_kernels::layout::Layout;

/// Tries these bytes.
pub fn layout(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(layout) = Layout::parse(text) else { return };
    let written = serde_json::to_string(&layout).expect("a layout can be written");
    assert_eq!(Layout::parse(&written).as_ref(), Ok(&layout), "{written}");
    for part in &layout.parts {
        let bytes: u128 =
            (0..part.files.len()).map(|number| u128::from(part.bytes_of(number))).sum();
        assert_eq!(bytes, u128::from(part.bytes), "{part:?}");
    }
    let named = layout.parts.iter().map(|part| part.files.len()).sum::<usize>();
    assert!(layout.own_files(Path::new("/data/set")).len() <= named);
}
