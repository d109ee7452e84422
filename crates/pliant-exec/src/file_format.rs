//! The file format of executables: a header, a section table, and the sections. Checksums cover every bit.
//!
//! ```text
//!  0  magic "PLIANTEX"      8  version u32     12  number of sections u32
//! 16  schema hash u64      24  file length u64
//! 32  per section: kind u32, CRC-32 u32, offset u64, length u64
//!     CRC-32 of all the above u32
//! ```
//! All numbers are little-endian. Sections follow in the order of the table. Each section starts at the next multiple of 64, after
//! zero padding, and the last section ends the file. Every bit is either covered by a checksum or has a fixed value, so a file with
//! one flipped bit is rejected. Tensors in the constants section can be used without copying, for example in a mapped file.
//!
//! Exactly one version is accepted, `VERSION`. Files with an older or a newer version are rejected with `ExecError::Version`; there
//! is no conversion (`check_header`). If the version and the checksum of the header match, the schema hash is compared. It
//! identifies the encoding of the program section. A file with another schema hash is rejected with `ExecError::Format`.

use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::{Advice, Mmap};
use pliant_tensor::{ALIGNMENT, AlignedBuf, Storage};

use crate::bytecode_program::Executable;
use crate::bytecode_validator::validate;
use crate::{ExecError, program_serialization};

const MAGIC: &[u8; 8] = b"PLIANTEX";
/// Version of the file format and of the ABI of loop functions.
const VERSION: u32 = 3;
const FIXED_HEADER_LEN: usize = 32;
const TABLE_ENTRY_LEN: usize = 24;
const ALIGN: u64 = 64;
/// The kind and the name of each section of an executable file, in the order in which a file must contain them.
const SECTIONS: [(u32, &str); 3] = [(1, "program"), (2, "constants"), (3, "kernels")];
/// Maximum size of the program section in bytes. Larger sections are rejected before decoding.
const MAX_PROGRAM: u64 = 256 << 20;

const fn schema_hash() -> u64 {
    // FNV-1a can be computed at compile time.
    let text = program_serialization::SCHEMA.as_bytes();
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    let mut i = 0;
    while i < text.len() {
        hash = (hash ^ text[i] as u64).wrapping_mul(0x0100_0000_01b3);
        i += 1;
    }
    hash
}

const HEADER_LEN: usize = FIXED_HEADER_LEN + TABLE_ENTRY_LEN * SECTIONS.len() + 4;

/// Adds the file's path to an I/O error, because the message of the operating system does not
/// contain the path.
fn at_path(path: &Path, error: &std::io::Error) -> std::io::Error {
    std::io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

impl Executable {
    /// Writes the executable to a stream.
    ///
    /// # Errors
    /// `Io` if writing fails; `Format` if the program cannot be encoded.
    pub fn write_to(&self, out: &mut dyn Write) -> Result<(), ExecError> {
        if cfg!(target_endian = "big") {
            return Err(ExecError::format(
                "executables can only be written on little-endian machines",
            ));
        }
        let (program, tensors) = program_serialization::encode(self)?;
        let constants_len = tensors.last().map_or(0, |(at, t)| at + t.nbytes() as u64);
        let mut crc = crc32fast::Hasher::new();
        write_tensors(&tensors, &mut |bytes| {
            crc.update(bytes);
            Ok(())
        })?;
        let sums = [crc32fast::hash(&program), crc.finalize(), crc32fast::hash(&self.kernels)];
        let lens = [program.len() as u64, constants_len, self.kernels.len() as u64];
        let (mut table, mut end) = (Vec::new(), HEADER_LEN as u64);
        for (((kind, _), sum), len) in SECTIONS.into_iter().zip(sums).zip(lens) {
            let offset = end.next_multiple_of(ALIGN);
            end = offset + len;
            table.extend(kind.to_le_bytes());
            table.extend(sum.to_le_bytes());
            table.extend(offset.to_le_bytes());
            table.extend(len.to_le_bytes());
        }
        let mut header = MAGIC.to_vec();
        header.extend(VERSION.to_le_bytes());
        header.extend((SECTIONS.len() as u32).to_le_bytes());
        header.extend(schema_hash().to_le_bytes());
        header.extend(end.to_le_bytes());
        header.extend(table);
        header.extend(crc32fast::hash(&header).to_le_bytes());

        let mut at = 0u64;
        let mut put = |bytes: &[u8]| {
            at += bytes.len() as u64;
            out.write_all(bytes).map(|()| at)
        };
        let mut pos = put(&header)?;
        put(&zeros(pos))?;
        pos = put(&program)?;
        put(&zeros(pos))?;
        write_tensors(&tensors, &mut |bytes| put(bytes).map(|_| ()))?;
        pos = put(&[])?;
        put(&zeros(pos))?;
        put(&self.kernels)?;
        Ok(())
    }

    /// Serializes the executable. [`Executable::from_bytes`] is the inverse.
    ///
    /// # Errors
    /// The same errors as [`Executable::write_to`].
    pub fn to_bytes(&self) -> Result<Vec<u8>, ExecError> {
        let mut bytes = Vec::new();
        self.write_to(&mut bytes)?;
        Ok(bytes)
    }

    /// Saves the executable to a file. Writes a temporary file in the same directory, then renames
    /// it. Executables that are mapped from an earlier file at this path stay valid.
    ///
    /// # Errors
    /// The same errors as [`Executable::write_to`].
    pub fn save(&self, path: &Path) -> Result<(), ExecError> {
        let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        // Makes the name of the temporary file unique among processes and saves.
        static SAVED: AtomicU64 = AtomicU64::new(0);
        let (process, save) = (std::process::id(), SAVED.fetch_add(1, Ordering::Relaxed));
        let beside = path.with_file_name(format!(".{name}.{process}-{save}.part"));
        // Write devices and pipes directly, because renaming would replace them.
        let plain = std::fs::metadata(path).map_or(true, |meta| meta.is_file());
        let to = if plain { &beside } else { path };
        let written = self.write_file(to);
        let placed = match written {
            Ok(()) if plain => std::fs::rename(to, path).map_err(|e| at_path(path, &e).into()),
            other => other,
        };
        if plain && placed.is_err() {
            // Remove the incomplete file. Report the error of writing, not of removing.
            let _ = std::fs::remove_file(to);
        }
        placed
    }

    fn write_file(&self, path: &Path) -> Result<(), ExecError> {
        let file = File::create(path).map_err(|e| at_path(path, &e))?;
        let mut out = BufWriter::with_capacity(1 << 20, file);
        self.write_to(&mut out)?;
        out.flush()?;
        Ok(())
    }

    /// Loads an executable by mapping a file into memory. The file must not be modified while the
    /// executable or one of its tensors exists.
    ///
    /// # Errors
    /// `Io` if the file cannot be read. Otherwise `InFile` with the errors of
    /// [`Executable::from_bytes`].
    pub fn load(path: &Path) -> Result<Executable, ExecError> {
        Executable::map_file(path).map_err(|error| error.in_file(path))
    }

    /// Maps an executable file into memory and decodes it, for [`Executable::load`]. Only I/O errors contain the path.
    fn map_file(path: &Path) -> Result<Executable, ExecError> {
        // Checked before opening, because opening a pipe blocks until it has a writer.
        if !std::fs::metadata(path).map_err(|e| at_path(path, &e))?.is_file() {
            return Err(ExecError::format("the executable is not a regular file"));
        }
        let mut file = File::open(path).map_err(|e| at_path(path, &e))?;
        let meta = file.metadata().map_err(|e| at_path(path, &e))?;
        // Check the header before mapping the rest.
        let mut header = Vec::with_capacity(HEADER_LEN);
        Read::by_ref(&mut file)
            .take(HEADER_LEN as u64)
            .read_to_end(&mut header)
            .map_err(|e| at_path(path, &e))?;
        check_header(&header, meta.len())?;
        // SAFETY: the documentation requires that the file does not change while it is mapped.
        let map = unsafe { Mmap::map(&file) }.map_err(|e| at_path(path, &e))?;
        // Prefetch the file, because the checksums read all of it. Not every operating system supports this.
        let _ = map.advise(Advice::WillNeed);
        let (start, len) = (map.as_ptr().cast_mut(), map.len());
        // SAFETY: the mapping stays at its address until the storage drops it, and nothing writes
        // to it.
        let storage = unsafe { Storage::from_foreign(start, len, true, move || drop(map)) };
        Executable::from_storage(storage)
    }

    /// Reads an executable from bytes, which are copied.
    ///
    /// # Errors
    /// `NotExecutable`, `Damaged`, `Format`, `Version` or `Invalid`. Arbitrary bytes cause an error, never a panic.
    pub fn from_bytes(bytes: &[u8]) -> Result<Executable, ExecError> {
        // Check the header before allocating memory for the copy.
        check_header(bytes, bytes.len() as u64)?;
        let storage = Storage::from_buf(buffer(bytes.len())?);
        // SAFETY: the storage is fresh, not shared, and as long as the bytes.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), storage.as_ptr(), bytes.len()) };
        Executable::from_storage(storage)
    }

    /// Reads an executable from shared memory, such as a mapped file, without copying the
    /// constants. Constant tensors are views of the storage. Only memory that is not 64-byte
    /// aligned is copied.
    ///
    /// # Errors
    /// The same errors as [`Executable::from_bytes`].
    pub fn from_storage(storage: Storage) -> Result<Executable, ExecError> {
        let bytes = if storage.is_empty() {
            &[][..]
        } else {
            // SAFETY: the storage holds `len` initialized bytes that nothing writes: the
            // executable's tensors are read-only, and the owner of the storage shares it for
            // reading.
            unsafe { std::slice::from_raw_parts(storage.as_ptr(), storage.len()) }
        };
        if !(bytes.as_ptr() as usize).is_multiple_of(ALIGNMENT) {
            return Executable::from_bytes(bytes);
        }
        let sections = check_header(bytes, bytes.len() as u64)?;
        let mut at = HEADER_LEN;
        for (section, (_, name)) in sections.iter().zip(SECTIONS) {
            if bytes[at..section.start].iter().any(|&b| b != 0) {
                return Err(ExecError::damaged(format!(
                    "the executable is damaged: the padding before section '{name}' is not zero"
                )));
            }
            if checksum(&bytes[section.start..section.end]) != section.crc {
                return Err(ExecError::damaged(format!(
                    "the executable is damaged: the checksum of section '{name}' does not match"
                )));
            }
            at = section.end;
        }
        let [program, constants, kernels] = sections;
        let (start, len) = (constants.start, constants.end - constants.start);
        let mut exe = program_serialization::decode(
            &bytes[program.start..program.end],
            &storage,
            start,
            len,
        )?;
        exe.kernels = bytes[kernels.start..kernels.end].to_vec();
        validate(&exe)?;
        Ok(exe)
    }
}

/// Number of bytes of a section whose checksum one task computes, when several threads share the
/// work.
const CHUNK: usize = 256 << 10;

/// The CRC-32 of a section. The worker team processes large sections in parallel.
fn checksum(bytes: &[u8]) -> u32 {
    let parts: Vec<&[u8]> = bytes.chunks(CHUNK).collect();
    if parts.len() < 2 {
        return crc32fast::hash(bytes);
    }
    let sums: Vec<OnceLock<crc32fast::Hasher>> = parts.iter().map(|_| OnceLock::new()).collect();
    let sum = |i: usize| {
        let mut crc = crc32fast::Hasher::new();
        crc.update(parts[i]);
        crc
    };
    pliant_pool::global().parallel_for(parts.len(), 1, &|range| {
        for i in range {
            sums[i].get_or_init(|| sum(i));
        }
    });
    let mut whole = crc32fast::Hasher::new();
    for (i, part) in sums.iter().enumerate() {
        whole.combine(part.get_or_init(|| sum(i)));
    }
    whole.finalize()
}

/// The byte range of a section in the file, and its checksum.
#[derive(Clone, Copy)]
struct Section {
    start: usize,
    end: usize,
    crc: u32,
}

fn buffer(len: usize) -> Result<AlignedBuf, ExecError> {
    AlignedBuf::zeroed(len).map_err(|error| ExecError::format(error.to_string()))
}

fn zeros(at: u64) -> Vec<u8> {
    vec![0; (at.next_multiple_of(ALIGN) - at) as usize]
}

fn write_tensors(
    tensors: &program_serialization::TensorOffsets,
    put: &mut dyn FnMut(&[u8]) -> std::io::Result<()>,
) -> Result<(), ExecError> {
    let mut end = 0u64;
    for (offset, tensor) in tensors {
        put(&vec![0; (offset - end) as usize])?;
        let bytes =
            tensor.as_bytes().expect("constant tensors are row-major, which the validator checked");
        put(bytes)?;
        end = offset + bytes.len() as u64;
    }
    Ok(())
}

/// Checks the header and the section table. `bytes` is the start of a file of `len` bytes and contains the header.
fn check_header(bytes: &[u8], len: u64) -> Result<[Section; SECTIONS.len()], ExecError> {
    let magic = bytes.get(..MAGIC.len()).unwrap_or(bytes);
    if !MAGIC.starts_with(magic) {
        return Err(ExecError::NotExecutable);
    }
    let Some(header) = bytes.get(..HEADER_LEN) else {
        return Err(ExecError::damaged("the executable is truncated: its header is incomplete"));
    };
    let version = u32_at(header, 8);
    if version != VERSION {
        return Err(ExecError::Version { found: version, expected: VERSION });
    }
    let section_count = u32_at(header, 12) as usize;
    if section_count != SECTIONS.len() {
        return Err(ExecError::damaged(format!(
            "the executable's header is damaged: it states {section_count} sections, but there must be {}",
            SECTIONS.len()
        )));
    }
    if u32_at(header, HEADER_LEN - 4) != crc32fast::hash(&header[..HEADER_LEN - 4]) {
        return Err(ExecError::damaged(
            "the executable's header is damaged: its checksum does not match",
        ));
    }
    if u64_at(header, 16) != schema_hash() {
        return Err(ExecError::format(
            "the executable was made by another build of Pliant; compile the model again",
        ));
    }
    let stated = u64_at(header, 24);
    if len < stated {
        let text = format!("the executable is truncated: the file has {len} of {stated} bytes");
        return Err(ExecError::damaged(text));
    }
    if len > stated {
        return Err(ExecError::damaged(
            "the executable is damaged: the file is longer than its header states",
        ));
    }
    let mut sections = [Section { start: 0, end: 0, crc: 0 }; SECTIONS.len()];
    let mut end = HEADER_LEN as u64;
    for (i, (kind, name)) in SECTIONS.into_iter().enumerate() {
        let at = FIXED_HEADER_LEN + i * TABLE_ENTRY_LEN;
        let (start, size) = (u64_at(header, at + 8), u64_at(header, at + 16));
        let next = start.checked_add(size).filter(|&next| next <= len);
        let expected = end.checked_next_multiple_of(ALIGN);
        let (Some(next), true, true) = (next, u32_at(header, at) == kind, expected == Some(start))
        else {
            return Err(ExecError::damaged(format!(
                "the executable is damaged: the table entry of section '{name}' is invalid"
            )));
        };
        sections[i] =
            Section { start: start as usize, end: next as usize, crc: u32_at(header, at + 4) };
        end = next;
    }
    if end != len {
        return Err(ExecError::damaged(
            "the executable is damaged: there are bytes after its last section",
        ));
    }
    if (sections[0].end - sections[0].start) as u64 > MAX_PROGRAM {
        return Err(ExecError::format("the program section is larger than the maximum of 256 MiB"));
    }
    Ok(sections)
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut out = [0; 4];
    out.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(out)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut out = [0; 8];
    out.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parallel_checksum_equals_the_serial_one() {
        for len in [0, 1, CHUNK - 1, CHUNK + 1, 3 * CHUNK + 12345] {
            let bytes: Vec<u8> = (0..len).map(|i| (i * 31 % 251) as u8).collect();
            assert_eq!(checksum(&bytes), crc32fast::hash(&bytes), "{len}");
        }
    }
}
