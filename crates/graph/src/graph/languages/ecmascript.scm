; Patterns for JavaScript and TypeScript. The captures are explained in docs/graph.md.

(function_declaration name: (_) @name) @definition.function
(generator_function_declaration name: (_) @name) @definition.function
(method_definition name: (_) @name) @definition.function
(variable_declarator
  name: (identifier) @name
  value: [(arrow_function) (function_expression) (generator_function)]) @definition.function
(pair
  key: (property_identifier) @name
  value: [(arrow_function) (function_expression) (generator_function)]) @definition.function
(assignment_expression
  left: [
    (identifier) @name
    (member_expression property: (property_identifier) @name)]
  right: [
    (arrow_function)
    (function_expression !name)
    (generator_function !name)]) @definition.function
(assignment_expression
  left: [(identifier) @name (member_expression property: (property_identifier) @name)] @_to
  right: [(function_expression name: (_)) (generator_function name: (_))]
  (#not-match? @_to "^(module[.])?exports$")) @definition.function
(class_declaration name: (_) @name) @definition.class
(variable_declarator name: (identifier) @name value: (class)) @definition.class
(program (lexical_declaration
  (variable_declarator name: (identifier) @name) @definition.constant))
(program (variable_declaration
  (variable_declarator name: (identifier) @name) @definition.constant))
(program (export_statement declaration: (lexical_declaration
  (variable_declarator name: (identifier) @name) @definition.constant)))
(program (export_statement declaration: (variable_declaration
  (variable_declarator name: (identifier) @name) @definition.constant)))
(program [
  (_ (variable_declarator name: [
    (object_pattern [
      (shorthand_property_identifier_pattern) @name @definition.constant
      (pair_pattern value: (identifier) @name @definition.constant)
      (object_assignment_pattern
        left: (shorthand_property_identifier_pattern) @name @definition.constant)])
    (array_pattern (identifier) @name @definition.constant)]))
  (export_statement declaration: (_ (variable_declarator name: [
    (object_pattern [
      (shorthand_property_identifier_pattern) @name @definition.constant
      (pair_pattern value: (identifier) @name @definition.constant)
      (object_assignment_pattern
        left: (shorthand_property_identifier_pattern) @name @definition.constant)])
    (array_pattern (identifier) @name @definition.constant)])))])
; An exported expression has no other name.
(export_statement
  "default" @name
  value: [(arrow_function) (function_expression) (generator_function)]) @definition.function
(export_statement "default" @name value: (class)) @definition.class
(export_statement
  "default" @name
  value: [(object) (call_expression) (new_expression)]) @definition.constant
; A call may wrap something of the file; the query does not show what.
(export_statement
  "default" @import.alias
  value: (call_expression)
  (#set! here))
; `module.exports` is the default export of older modules; only expressions have a name of their own.
(assignment_expression
  left: [
    (identifier) @import.alias
    (member_expression property: (property_identifier) @import.alias)] @_to
  right: [
    (identifier) @import.name
    (function_expression name: (_) @name @import.name) @definition.function
    (generator_function name: (_) @name @import.name) @definition.function
    (class name: (_) @name @import.name) @definition.class]
  (#match? @_to "^(module[.])?exports$")
  (#set! exported) (#set! here))
(assignment_expression
  left: [(identifier) @name (member_expression property: (property_identifier) @name)] @_to
  right: (class !name)
  (#match? @_to "^(module[.])?exports$")) @definition.class

(call_expression function: [
  (identifier) @call
  (super) @call
  (member_expression property: [(property_identifier) (private_property_identifier)] @call)])
(new_expression constructor: [
  (identifier) @call
  (member_expression property: (property_identifier) @call)])

(import_statement
  (import_clause (identifier) @import.alias)
  source: (string (string_fragment) @import.module))
(import_statement
  (import_clause (namespace_import (identifier) @import.alias))
  source: (string (string_fragment) @import.module))
(import_statement
  (import_clause (named_imports (import_specifier name: (_) @import.name !alias)))
  source: (string (string_fragment) @import.module))
(import_statement
  (import_clause (named_imports
    (import_specifier name: (_) @import.name alias: (_) @import.alias)))
  source: (string (string_fragment) @import.module))
(export_statement
  (export_clause (export_specifier name: (_) @import.name !alias))
  source: (string (string_fragment) @import.module)
  (#set! exported))
(export_statement
  (export_clause (export_specifier name: (_) @import.name alias: (_) @import.alias))
  source: (string (string_fragment) @import.module)
  (#set! exported))
(export_statement
  (namespace_export (_) @import.alias)
  source: (string (string_fragment) @import.module)
  (#set! exported))
(export_statement
  "*" @import.all
  source: (string (string_fragment) @import.module)
  (#set! exported))
(variable_declarator
  name: (identifier) @import.alias
  value: [
    (call_expression
      function: (identifier) @_require
      arguments: (arguments (string (string_fragment) @import.module)))
    (member_expression
      object: (call_expression
        function: (identifier) @_require
        arguments: (arguments (string (string_fragment) @import.module)))
      property: (property_identifier) @import.name)]
  (#eq? @_require "require"))
(variable_declarator
  name: (object_pattern (shorthand_property_identifier_pattern) @import.name)
  value: (call_expression
    function: (identifier) @_require
    arguments: (arguments (string (string_fragment) @import.module)))
  (#eq? @_require "require"))
(variable_declarator
  name: (object_pattern (pair_pattern
    key: (property_identifier) @import.name
    value: (identifier) @import.alias))
  value: (call_expression
    function: (identifier) @_require
    arguments: (arguments (string (string_fragment) @import.module)))
  (#eq? @_require "require"))
(assignment_expression
  left: [
    (identifier) @import.alias
    (member_expression property: (property_identifier) @import.alias)] @_to
  right: [
    (call_expression
      function: (identifier) @_require
      arguments: (arguments (string (string_fragment) @import.module)))
    (member_expression
      object: (call_expression
        function: (identifier) @_require
        arguments: (arguments (string (string_fragment) @import.module)))
      property: (property_identifier) @import.name)]
  (#eq? @_require "require")
  (#match? @_to "^(module[.])?exports([.][^.]+)?$")
  (#set! exported))

; Other names for something of this file.
(export_statement
  (export_clause (export_specifier name: (_) @import.name alias: (_) @import.alias))
  !source
  (#set! exported) (#set! here))
(export_statement
  "default" @import.alias
  value: (identifier) @import.name
  (#set! exported) (#set! here))
(export_statement
  "default" @import.alias
  declaration: [
    (function_declaration name: (_) @import.name)
    (generator_function_declaration name: (_) @import.name)
    (class_declaration name: (_) @import.name)]
  (#set! exported) (#set! here))
