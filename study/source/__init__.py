"""A study's own code: reading, hashing, copying, and importing from the copy (docs/explanation/code-copies.md).

distributions  versions of installed packages
places         origin of a top-level module: the user's own, installed, Python's or this package's
imports        modules that a source file imports
source_code    import strings -> files of the user's own code, their digest, their identity in trial ids
program_code   words of a command -> the user's files in it, and the modules that they import
code_files     finding, checking and reading of code files
parsed         digest of code without comments, docstrings and formatting
archive        files as bytes for the store, unpacked once per machine
code_folder    folder of a copy, and import of its objects
cells          a function of a notebook -> a module
source_data    data files of a study file, identified by their digest
"""

from study.plugins.import_string import ImportString, is_import_string, parse_import_string
from study.source.archive import code_cache, data_cache, digest_of, pack_archive, read_archive, unpacked
from study.source.cells import import_string_of
from study.source.code_folder import CodeFolder, load_announced, load_copied
from study.source.distributions import check_distributions
from study.source.parsed import parsed_digest, parsed_files
from study.source.program_code import program_words, read_program_code
from study.source.source_code import SourceCode, read_source_code
from study.source.source_data import SourceData, read_data

__all__ = [
    "CodeFolder",
    "ImportString",
    "SourceCode",
    "SourceData",
    "check_distributions",
    "code_cache",
    "data_cache",
    "digest_of",
    "import_string_of",
    "is_import_string",
    "load_announced",
    "load_copied",
    "pack_archive",
    "parse_import_string",
    "parsed_digest",
    "parsed_files",
    "program_words",
    "read_archive",
    "read_data",
    "read_program_code",
    "read_source_code",
    "unpacked",
]
