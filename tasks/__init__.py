"""Built-in tasks, one folder each; `shared` holds their common modules.

`study` loads them through the entry points of pyproject.toml, like the tasks of any installed package. The modules
beside the folders re-export names of `study` for code that imports them from their former place.
"""
