(field_definition
  property: (_) @name
  value: [(arrow_function) (function_expression)]) @definition.function
(class_declaration (class_heritage (_) @base))
(class (class_heritage (_) @base))
