// What every public header includes: the C++ that it takes, and what a shared libsp3 shows. Not
// part of the API.
//
// A shared library that is built without this repository's own programs hides all other symbols
// (cmake/Visibility.cmake). Classes are marked as a whole where their typeinfo has to be one and
// the same on both sides, as for errors thrown there and caught here. Else it means nothing.
#pragma once

#if __cplusplus < 202002L
#error "sp3 needs C++20"
#endif
// A conflict, a cancellation and every error leave a body by an exception. Code that is compiled
// without them is passed through in silence: its destructors do not run.
#ifndef __cpp_exceptions
#error "sp3 needs exceptions"
#endif

#define SP3_API [[gnu::visibility("default")]]
