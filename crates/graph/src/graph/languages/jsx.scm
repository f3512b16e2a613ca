; An element calls its component; a name in lower case is one of HTML.
(jsx_opening_element name: (identifier) @call (#match? @call "^[A-Z]"))
(jsx_opening_element
  name: (member_expression property: (property_identifier) @call))
(jsx_self_closing_element name: (identifier) @call (#match? @call "^[A-Z]"))
(jsx_self_closing_element
  name: (member_expression property: (property_identifier) @call))
