//! The data of the object file of a program that is compiled ahead of time: the table of imports, the executable, and the header.
//! `pliant-exec/src/ahead_of_time_abi.rs` defines their format.

use std::cell::RefCell;

use indexmap::IndexSet;
use inkwell::AddressSpace;
use inkwell::module::Linkage;
use inkwell::types::BasicType;
use inkwell::values::{BasicValueEnum, GlobalValue, PointerValue};
use pliant_codegen::ProgramData;
use pliant_exec::ahead_of_time_abi::{EXECUTABLE_ALIGNMENT, Import, PROGRAM_HEADER_VERSION};

use crate::compilation_unit::{CompiledFunction, Unit};
use crate::function_builder::{Gen, internal};

/// The table of imports of an object file under construction, which contains the addresses of the functions of the run-time library
/// that the code calls.
pub(crate) struct ImportTable<'ctx> {
    /// A temporary global variable that the code refers to instead of the table, until the length of the table is known.
    placeholder: GlobalValue<'ctx>,
    imports: RefCell<IndexSet<Import>>,
}

impl<'ctx> ImportTable<'ctx> {
    /// Creates an empty table.
    pub fn new(module: &inkwell::module::Module<'ctx>) -> ImportTable<'ctx> {
        let pointer = module.get_context().ptr_type(AddressSpace::default());
        let placeholder = module.add_global(pointer.array_type(0), None, "pliant.imports");
        ImportTable { placeholder, imports: RefCell::default() }
    }

    /// Returns the address of the table entry for an imported function. Adds the import to the table if it is new.
    pub fn entry(&self, import: Import) -> PointerValue<'ctx> {
        let (position, _) = self.imports.borrow_mut().insert_full(import);
        let table = self.placeholder.as_pointer_value();
        let bytes = table.get_type().get_context().i8_type();
        let offset =
            table.get_type().get_context().i64_type().const_int(8 * position as u64, false);
        // SAFETY: the table has this entry.
        unsafe { table.const_gep(bytes, &[offset]) }
    }

    /// Returns the functions of the run-time library that the code calls so far, in the order of the table.
    pub fn imports(&self) -> Vec<Import> {
        self.imports.borrow().iter().cloned().collect()
    }
}

/// Adds the table of imports, the data, and the header of the program to the module of an object file.
///
/// # Errors
/// `Internal` if a loop function is missing.
pub(crate) fn add_data<'ctx>(
    unit: &Unit<'ctx>,
    table: ImportTable<'ctx>,
    functions: &[CompiledFunction],
    data: &ProgramData,
) -> Gen<()> {
    let pointer = unit.context.ptr_type(AddressSpace::default());
    let null = pointer.const_null();
    let symbol_type = unit.context.void_type().fn_type(&[], false);
    let import_values: Vec<PointerValue<'ctx>> = data
        .imports
        .iter()
        .map(|import| match import.symbol() {
            None => null,
            Some(symbol) => {
                let declared = unit.module.get_function(&symbol);
                let function = declared
                    .unwrap_or_else(|| unit.module.add_function(&symbol, symbol_type, None));
                function.as_global_value().as_pointer_value()
            }
        })
        .collect();
    let imports =
        internal_global(unit, "pliant.import_table", pointer.const_array(&import_values).into());
    // The run-time library writes entries.
    imports.set_externally_initialized(true);
    table.placeholder.as_pointer_value().replace_all_uses_with(imports.as_pointer_value());
    // SAFETY: nothing refers to the placeholder.
    unsafe { table.placeholder.delete() };

    // Objects of several programs may contain functions of the same name.
    for function in unit.module.get_functions().filter(|f| f.count_basic_blocks() > 0) {
        function.set_linkage(Linkage::Internal);
    }
    let mut entries = Vec::with_capacity(functions.len());
    for function in functions {
        let Some(entry) = unit.module.get_function(&function.symbol) else {
            return internal(format!("the loop function '{}' is missing", function.name));
        };
        entries.push(entry.as_global_value().as_pointer_value());
    }
    let entries =
        internal_global(unit, "pliant.loop_functions", pointer.const_array(&entries).into());
    entries.set_constant(true);
    let bytes = |name: &str, bytes: &[u8], alignment: u64| {
        let global = internal_global(unit, name, unit.context.const_string(bytes, false).into());
        global.set_constant(true);
        global.set_alignment(alignment as u32);
        global
    };
    let executable = bytes("pliant.executable", &data.executable, EXECUTABLE_ALIGNMENT);
    let description = bytes("pliant.description", &data.description, 8);

    let number = |value: u64| BasicValueEnum::from(unit.context.i64_type().const_int(value, false));
    let address = |global: GlobalValue<'ctx>| BasicValueEnum::from(global.as_pointer_value());
    let fields = [
        number(PROGRAM_HEADER_VERSION),
        address(executable),
        number(data.executable.len() as u64),
        address(description),
        number(data.description.len() as u64),
        address(entries),
        address(imports),
    ];
    let header = unit.context.const_struct(&fields, false);
    let global = unit.module.add_global(header.get_type(), None, &data.symbol);
    global.set_initializer(&header);
    global.set_constant(true);
    global.set_alignment(8);
    Ok(())
}

/// Adds a global variable that only the module uses.
fn internal_global<'ctx>(
    unit: &Unit<'ctx>,
    name: &str,
    value: BasicValueEnum<'ctx>,
) -> GlobalValue<'ctx> {
    let global = unit.module.add_global(value.get_type().as_basic_type_enum(), None, name);
    global.set_initializer(&value);
    global.set_linkage(Linkage::Internal);
    global.set_alignment(8);
    global
}
