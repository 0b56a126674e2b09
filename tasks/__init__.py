"""Tasks that come along, a folder each; `shared` has what several of them use.

They reach `study` by the entry points of pyproject.toml, as the tasks of any installed package do. Modules beside the
folders re-export names of `study` for code that was written when they were here.
"""
