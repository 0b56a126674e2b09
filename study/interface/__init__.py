"""What code of one's own declares or implements, and how a study reads it.

seeded                        the mark of objects that a study file may name
declarations, values, data    metrics, hyperparameters, types of their values, files of data
signature                     the hyperparameters that a function, a builder of models or a task has
family                        what a study must know of its trials; function_family, packed_family: of code of one's own
function/                     calls a training function, in this process or in a child
criterion, references         when a trial is solved: by bounds of metrics, or by other trials
declared_json                 declarations as JSON, which is read without the code
error_text, stop_signals      errors that such code raises, told apart from stops by a signal
l1_strengths                  the L1 penalty, which every family has
"""
