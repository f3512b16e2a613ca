; Declarations, calls and imports of Rust. The captures are explained in docs/graph.md.

(function_item name: (identifier) @name) @definition.function
(function_signature_item name: (identifier) @name) @definition.function
(macro_definition name: (identifier) @name) @definition.function
(struct_item name: (type_identifier) @name) @definition.class
(enum_item name: (type_identifier) @name) @definition.class
(union_item name: (type_identifier) @name) @definition.class
(trait_item name: (type_identifier) @name) @definition.class
(impl_item type: (_) @name) @definition.extension
(mod_item name: (identifier) @name) @definition.module
(const_item name: (identifier) @name) @definition.constant
(static_item name: (identifier) @name) @definition.constant
(type_item name: (type_identifier) @name) @definition.constant
(associated_type name: (type_identifier) @name) @definition.constant

(call_expression function: [
  (identifier) @call
  (scoped_identifier name: (identifier) @call)
  (field_expression field: (field_identifier) @call)
  (generic_function function: [
    (identifier) @call
    (scoped_identifier name: (identifier) @call)
    (field_expression field: (field_identifier) @call)])])
(macro_invocation macro: [
  (identifier) @call
  (scoped_identifier name: (identifier) @call)])
(struct_expression name: [
  (type_identifier) @call
  (scoped_type_identifier name: (type_identifier) @call)
  (generic_type_with_turbofish type: (type_identifier) @call)])
; The arguments of a macro are only tokens.
(token_tree (identifier) @call (#bracket? @call))

(use_declaration (visibility_modifier) argument: (_) @import.tree (#set! exported))
(use_declaration argument: (_) @import.tree)
