//! Reads and writes row-major arrays as NumPy's `.npy` files.

use std::path::Path;

use pliant_tensor::{DType, Tensor};

const MAGIC: &[u8] = b"\x93NUMPY";

/// Reads a tensor from a `.npy` file.
///
/// # Errors
/// A message with the path, if the file cannot be read or is not a supported array.
pub fn read(path: &Path) -> Result<Tensor, String> {
    let bytes =
        std::fs::read(path).map_err(|e| format!("cannot read the file {}: {e}", path.display()))?;
    parse(&bytes).map_err(|why| format!("cannot load the array file {}: {why}", path.display()))
}

fn parse(bytes: &[u8]) -> Result<Tensor, String> {
    let truncated = || "the .npy file is truncated".to_string();
    if !bytes.starts_with(MAGIC) {
        return Err("the file is not a .npy file: it does not begin with the magic bytes".into());
    }
    let major = *bytes.get(6).ok_or_else(truncated)?;
    let (len, offset): (usize, usize) = match major {
        1 => {
            let raw = bytes.get(8..10).ok_or_else(truncated)?;
            (usize::from(u16::from_le_bytes([raw[0], raw[1]])), 10)
        }
        2 | 3 => {
            let raw = bytes.get(8..12).ok_or_else(truncated)?;
            (u32::from_le_bytes([raw[0], raw[1], raw[2], raw[3]]) as usize, 12)
        }
        other => {
            return Err(format!(
                "the file has version {other} of the .npy format, but only the versions 1 to 3 are supported"
            ));
        }
    };
    let end = offset.checked_add(len).ok_or_else(truncated)?;
    let header = bytes.get(offset..end).ok_or_else(truncated)?;
    let header = std::str::from_utf8(header)
        .map_err(|_| "the header of the .npy file is not UTF-8 text".to_string())?;
    let dtype = parse_dtype(header_field(header, "descr")?)?;
    if header_field(header, "fortran_order")?.starts_with("True") {
        return Err("the array in the .npy file is in Fortran order; save np.ascontiguousarray(x) instead of x".into());
    }
    let shape = parse_shape(header_field(header, "shape")?)?;
    Tensor::from_bytes(&shape, dtype, &bytes[end..]).map_err(|e| e.to_string())
}

/// Returns the text that follows `'name':` in the header of a `.npy` file.
fn header_field<'a>(header: &'a str, name: &str) -> Result<&'a str, String> {
    let key = format!("'{name}':");
    let offset = header
        .find(&key)
        .ok_or_else(|| format!("the header of the .npy file has no entry '{name}'"))?;
    Ok(header[offset + key.len()..].trim_start())
}

fn parse_dtype(text: &str) -> Result<DType, String> {
    let code = text.trim_start_matches('\'').split('\'').next().unwrap_or("");
    let dtype = match code.trim_start_matches(['<', '|', '=']) {
        "b1" => DType::Bool,
        "i1" => DType::Int8,
        "i2" => DType::Int16,
        "i4" => DType::Int32,
        "i8" => DType::Int64,
        "u1" => DType::UInt8,
        "u2" => DType::UInt16,
        "u4" => DType::UInt32,
        "u8" => DType::UInt64,
        "f2" => DType::Float16,
        "f4" => DType::Float32,
        "f8" => DType::Float64,
        _ => return Err(format!("the .npy file has elements of the unsupported type '{code}'")),
    };
    Ok(dtype)
}

fn parse_shape(text: &str) -> Result<Vec<i64>, String> {
    let inner = text.strip_prefix('(').and_then(|t| t.split(')').next());
    let inner = inner.ok_or_else(|| "the shape in the .npy header is not a tuple".to_string())?;
    let parts = inner.split(',').map(str::trim).filter(|p| !p.is_empty());
    parts
        .map(|p| {
            p.parse().map_err(|_| format!("'{p}' in the shape of the .npy header is not a size"))
        })
        .collect()
}

/// Writes the elements of a tensor to a `.npy` file.
///
/// # Errors
/// A message with the reason, if NumPy lacks the element type or the file cannot be written.
pub fn write(path: &Path, tensor: &Tensor) -> Result<(), String> {
    let tensor = tensor.to_contiguous().map_err(|e| e.to_string())?;
    let code =
        match tensor.dtype() {
            DType::Bool => "|b1",
            DType::Int8 => "|i1",
            DType::Int16 => "<i2",
            DType::Int32 => "<i4",
            DType::Int64 => "<i8",
            DType::UInt8 => "|u1",
            DType::UInt16 => "<u2",
            DType::UInt32 => "<u4",
            DType::UInt64 => "<u8",
            DType::Float16 => "<f2",
            DType::Float32 => "<f4",
            DType::Float64 => "<f8",
            DType::BFloat16 => return Err(
                "a bfloat16 tensor cannot be saved as a .npy file, because NumPy has no bfloat16"
                    .into(),
            ),
        };
    let dims: Vec<String> = tensor.shape().iter().map(i64::to_string).collect();
    let shape = match &dims[..] {
        [one] => format!("({one},)"),
        _ => format!("({})", dims.join(", ")),
    };
    let mut header = format!("{{'descr': '{code}', 'fortran_order': False, 'shape': {shape}, }}");
    // Pads the header so that the data starts at a multiple of 64 bytes.
    while (10 + header.len() + 1) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    let len = u16::try_from(header.len())
        .map_err(|_| "the array has too many dims for the header of a .npy file".to_string())?;
    let mut bytes = [MAGIC, &[1, 0], &len.to_le_bytes(), header.as_bytes()].concat();
    bytes.extend_from_slice(tensor.as_bytes().map_err(|e| e.to_string())?);
    std::fs::write(path, bytes)
        .map_err(|e| format!("cannot write the file {}: {e}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_round_trip_and_invalid_files_are_rejected() {
        let dir = std::env::temp_dir().join(format!("pliant-npy-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let path = dir.join("a.npy");
        let tensor = Tensor::from_slice(&[2, 3], &[1f32, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
        write(&path, &tensor).unwrap();
        let back = read(&path).unwrap();
        assert_eq!(back.shape(), &[2, 3]);
        assert_eq!(back.to_vec::<f32>().unwrap(), tensor.to_vec::<f32>().unwrap());
        let bytes = std::fs::read(&path).unwrap();
        assert!(parse(&bytes[..bytes.len() - 1]).is_err());
        assert!(parse(b"PK").unwrap_err().contains("not a .npy file"));
        for cut in 0..bytes.len() {
            assert!(parse(&bytes[..cut]).is_err(), "cut at {cut}");
        }
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
