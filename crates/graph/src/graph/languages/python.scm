; Declarations, calls and imports of Python. The captures are explained in docs/graph.md.

(decorated_definition
  definition: (function_definition name: (identifier) @name)) @definition.function
(function_definition name: (identifier) @name) @definition.function
(decorated_definition
  definition: (class_definition name: (identifier) @name)) @definition.class
(class_definition name: (identifier) @name) @definition.class
(assignment left: (identifier) @name right: (lambda)) @definition.function
(module (expression_statement
  (assignment left: (identifier) @name) @definition.constant))
(module (expression_statement
  (assignment left: (pattern_list (identifier) @name @definition.constant))))
(module (type_alias_statement
  left: (type [(identifier) @name (generic_type (identifier) @name)])) @definition.constant)

(class_definition superclasses: (argument_list [
  (identifier) @base
  (attribute) @base
  (subscript value: (_) @base)]))

(call function: [
  (identifier) @call
  (attribute attribute: (identifier) @call)])
(decorator [
  (identifier) @call
  (attribute attribute: (identifier) @call)])

(import_statement name: (dotted_name)+ @import.module)
(import_statement
  name: (aliased_import name: (dotted_name) @import.module alias: (identifier) @import.alias)+)
(import_from_statement
  module_name: (_) @import.module
  name: (dotted_name)+ @import.name
  (#set! exported))
(import_from_statement
  module_name: (_) @import.module
  name: (aliased_import name: (dotted_name) @import.name alias: (identifier) @import.alias)+
  (#set! exported))
(import_from_statement
  module_name: (_) @import.module
  (wildcard_import) @import.all
  (#set! exported))
