"""The code that a study names: read, hashed, copied, and imported from the copy (docs/explanation/code-copies.md).

distributions  the versions of installed packages
places         whose a top-level module is: the user's own, installed, Python's or this package's
imports        which modules a source file imports
source_code    import strings -> the files of the user's own code, their digest and what stands for them in an id
program_code   the words of a command -> the files of the user's own that they name, and the modules these import
code_files     the files of both: found, checked, and read
parsed         the digest of code without comments, docstrings and formatting
archive        the files as bytes for the store, and back, unpacked once a machine
code_folder    the folder of a copy, and the objects in it
cells          a function of a notebook -> a module
source_data    the data files that a study file names, known by their digest
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
