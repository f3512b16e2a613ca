; A component is called by being placed; what begins with a small letter is the browser's.
(jsx_opening_element name: (identifier) @call (#match? @call "^[A-Z]"))
(jsx_opening_element
  name: (member_expression property: (property_identifier) @call))
(jsx_self_closing_element name: (identifier) @call (#match? @call "^[A-Z]"))
(jsx_self_closing_element
  name: (member_expression property: (property_identifier) @call))
