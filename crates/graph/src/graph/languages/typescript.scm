(public_field_definition
  name: (_) @name
  value: [(arrow_function) (function_expression)]) @definition.function
(class_declaration (class_heritage (extends_clause value: (_)+ @base)))
(abstract_class_declaration (class_heritage (extends_clause value: (_)+ @base)))
(class (class_heritage (extends_clause value: (_)+ @base)))
(function_signature name: (_) @name) @definition.function
(method_signature name: (_) @name) @definition.function
(abstract_method_signature name: (_) @name) @definition.function
(abstract_class_declaration name: (_) @name) @definition.class
(interface_declaration name: (_) @name) @definition.class
(enum_declaration name: (_) @name) @definition.class
(type_alias_declaration name: (_) @name) @definition.constant
(module name: (_) @name) @definition.module
(internal_module name: (_) @name) @definition.module
(internal_module body: (statement_block (export_statement declaration: (lexical_declaration
  (variable_declarator name: (identifier) @name) @definition.constant))))
(internal_module body: (statement_block (lexical_declaration
  (variable_declarator name: (identifier) @name) @definition.constant)))
(module body: (statement_block (export_statement declaration: (lexical_declaration
  (variable_declarator name: (identifier) @name) @definition.constant))))
(module body: (statement_block (lexical_declaration
  (variable_declarator name: (identifier) @name) @definition.constant)))
(program (ambient_declaration [
  (lexical_declaration (variable_declarator name: (identifier) @name) @definition.constant)
  (variable_declaration (variable_declarator name: (identifier) @name) @definition.constant)
  (statement_block [
    (lexical_declaration (variable_declarator name: (identifier) @name) @definition.constant)
    (variable_declaration (variable_declarator name: (identifier) @name) @definition.constant)])]))
(program (export_statement declaration: (ambient_declaration [
  (lexical_declaration (variable_declarator name: (identifier) @name) @definition.constant)
  (variable_declaration (variable_declarator name: (identifier) @name) @definition.constant)])))

(import_statement
  (import_require_clause (identifier) @import.alias source: (string (string_fragment) @import.module)))
