//! The object file of a program that is compiled ahead of time: its machine functions, the table of imports, and the data.
//! `pliant-exec/src/ahead_of_time_abi.rs` defines their format.

use cranelift_codegen::ir::{InstBuilder, Value, types};
use cranelift_codegen::isa::OwnedTargetIsa;
use cranelift_frontend::FunctionBuilder;
use cranelift_module::{DataDescription, DataId, FuncId, Linkage, Module};
use cranelift_object::{ObjectBuilder, ObjectModule};
use indexmap::IndexSet;
use pliant_codegen::{CodegenError, ProgramData};
use pliant_exec::ahead_of_time_abi::{
    EXECUTABLE_ALIGNMENT, Import, PROGRAM_HEADER_VERSION, ProgramHeader,
};

use crate::function_builder::constant_mem_flags;

/// An object file under construction.
pub(crate) struct ObjectFile {
    pub module: ObjectModule,
    /// The table of imports, which contains the addresses of the functions of the run-time library that the code calls.
    import_table: DataId,
    imports: IndexSet<Import>,
}

impl ObjectFile {
    /// Creates an object file without functions.
    ///
    /// # Errors
    /// The message of Cranelift if it cannot write object files for the target.
    pub fn new(isa: &OwnedTargetIsa) -> Result<ObjectFile, String> {
        let libcalls = cranelift_module::default_libcall_names();
        let builder = ObjectBuilder::new(isa.clone(), "pliant", libcalls);
        let mut module = ObjectModule::new(builder.map_err(|e| e.to_string())?);
        let table = module.declare_data("pliant.imports", Linkage::Local, true, false);
        let import_table = table.map_err(|e| e.to_string())?;
        Ok(ObjectFile { module, import_table, imports: IndexSet::new() })
    }

    /// Emits a load of the address of an imported function from the table of imports. Adds the import to the table if it is new.
    pub fn load_import(&mut self, b: &mut FunctionBuilder<'_>, import: Import) -> Value {
        let (position, _) = self.imports.insert_full(import);
        let table = self.module.declare_data_in_func(self.import_table, b.func);
        let table = b.ins().symbol_value(types::I64, table);
        b.ins().load(types::I64, constant_mem_flags(), table, (8 * position) as i32)
    }

    /// Returns the functions of the run-time library that the code calls so far, in the order of the table of imports.
    pub fn imports(&self) -> Vec<Import> {
        self.imports.iter().cloned().collect()
    }

    /// Adds the table of imports, the data, and the header of the program. `functions` are the entry points of the loop
    /// functions. Returns the bytes of the file.
    ///
    /// # Errors
    /// `Internal` if Cranelift rejects the data.
    pub fn finish(self, functions: &[FuncId], data: ProgramData) -> Result<Vec<u8>, CodegenError> {
        self.write(functions, data).map_err(|message| CodegenError::Internal {
            function: "the object file".into(),
            message,
            ir: String::new(),
        })
    }

    fn write(mut self, functions: &[FuncId], data: ProgramData) -> Result<Vec<u8>, String> {
        let lengths = [data.executable.len(), data.description.len()];
        self.define_imports(&data.imports)?;
        let executable = self.define("pliant.executable", data.executable, EXECUTABLE_ALIGNMENT)?;
        let description = self.define("pliant.description", data.description, 8)?;
        let entries = self.define_entries(functions)?;

        let mut words = [0u64; size_of::<ProgramHeader>() / 8];
        (words[0], words[2], words[4]) =
            (PROGRAM_HEADER_VERSION, lengths[0] as u64, lengths[1] as u64);
        let mut header = DataDescription::new();
        header.define(words.iter().flat_map(|word| word.to_le_bytes()).collect());
        header.set_align(8);
        for (word, target) in
            [(1, executable), (3, description), (5, entries), (6, self.import_table)]
        {
            let target = self.module.declare_data_in_data(target, &mut header);
            header.write_data_addr(8 * word, target, 0);
        }
        let symbol = self.module.declare_data(&data.symbol, Linkage::Export, false, false);
        let symbol = symbol.map_err(|e| e.to_string())?;
        self.module.define_data(symbol, &header).map_err(|e| e.to_string())?;
        self.module.finish().emit().map_err(|e| e.to_string())
    }

    /// Defines the table of imports. The linker stores the addresses of imports that are symbols; the other entries are 0.
    fn define_imports(&mut self, imports: &[Import]) -> Result<(), String> {
        let mut table = DataDescription::new();
        table.define(vec![0; 8 * imports.len().max(1)].into());
        table.set_align(8);
        // The signature of a symbol whose address is stored does not matter.
        let signature = self.module.make_signature();
        for (i, symbol) in
            (0u32..).zip(imports).filter_map(|(i, import)| Some((i, import.symbol()?)))
        {
            let function = self.module.declare_function(&symbol, Linkage::Import, &signature);
            let function = function.map_err(|e| e.to_string())?;
            let function = self.module.declare_func_in_data(function, &mut table);
            table.write_function_addr(8 * i, function);
        }
        self.module.define_data(self.import_table, &table).map_err(|e| e.to_string())
    }

    /// Adds read-only data to the file, under the local symbol `name`.
    fn define(&mut self, name: &str, bytes: Vec<u8>, alignment: u64) -> Result<DataId, String> {
        let id = self.module.declare_data(name, Linkage::Local, false, false);
        let id = id.map_err(|e| e.to_string())?;
        let mut data = DataDescription::new();
        // Data must not be empty.
        data.define(if bytes.is_empty() { Box::new([0]) } else { bytes.into() });
        data.set_align(alignment);
        self.module.define_data(id, &data).map_err(|e| e.to_string())?;
        Ok(id)
    }

    /// Defines the table of the entry points of the loop functions.
    fn define_entries(&mut self, functions: &[FuncId]) -> Result<DataId, String> {
        let id = self.module.declare_data("pliant.loop_functions", Linkage::Local, false, false);
        let id = id.map_err(|e| e.to_string())?;
        let mut table = DataDescription::new();
        table.define(vec![0; 8 * functions.len().max(1)].into());
        table.set_align(8);
        for (i, &function) in (0u32..).zip(functions) {
            let function = self.module.declare_func_in_data(function, &mut table);
            table.write_function_addr(8 * i, function);
        }
        self.module.define_data(id, &table).map_err(|e| e.to_string())?;
        Ok(id)
    }
}
