# Marks plain C++ comments for Doxygen:
#   the block at the top of a file   documents the file
#   a comment on its own line        documents what follows
#   a comment after code             documents what stands before it, and so does one below it that
#                                    starts in the same column
function is_comment_line() { return $0 ~ /^ *\/\/( |$)/ }

FNR == 1 && is_comment_line() { print "/// \\file\n///" }

is_comment_line() {
  sub(/\/\//, index($0, "//") == trailing_column ? "///<" : "///")
  print
  next
}

{
  trailing_column = 0
  # Not the "// namespace" after a brace. A quote after the slashes means that they are in a string.
  if ($0 !~ /^ *}/ && match($0, /  ?\/\/ [^"]*$/)) {
    trailing_column = index(substr($0, RSTART), "//") + RSTART - 1
    $0 = substr($0, 1, trailing_column - 1) "///<" substr($0, trailing_column + 2)
  }
  print
}
