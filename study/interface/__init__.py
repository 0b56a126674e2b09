"""Interface between a study and user code: declarations, base classes, and calls of training functions.

seeded                        marker of objects that a study file may name
declarations, values, data    metrics, hyperparameters, types of values, data files
task, layers, networks        base class of packed tasks, layers for packs, networks of two layers
signature, configs            hyperparameters from the signature of a function, a model builder or a task
family                        base class of families; implemented by function_family, packed_family, program_family
program                       command of a program, with placeholders
function/                     calls of a training function, in this process or in a child process
criterion, references         success criteria: bounds of metrics, or bounds set by reference trials
pruning                       early stopping of trials
declared_json                 declarations as JSON, readable without the user's code
error_text, stop_signals      errors raised by user code, and stops by a signal
json_text                     JSON from outside, such as damaged files
l1_strengths                  strengths of the L1 penalty, shared by all families
"""
