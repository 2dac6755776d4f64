// How sp3 knows that the object at a Ptr has the type the program thinks it has.
//
// Every slab of a pool holds objects of one type and remembers that type's fingerprint: a hash of
// its name, version, size and alignment and, for a node of a container, of the versions of what it
// holds. Reading through a Ptr of another type is a typed error.
//
// The default name is the compiler's spelling of the type. A program that wants to rename a type,
// or to be compiled by several compilers, specialises TypeTag:
//
//     template <> struct sp3::TypeTag<Account> {
//       static constexpr std::string_view name = "bank.Account";
//       static constexpr std::uint32_t version = 2;   // change it with the meaning of the bytes
//     };
//
// A type that is in use is changed by leaving it as it is, under its name, declaring the new one under
// another, and copying: examples/upgrade.cc does it in many transactions.
//
// A new version reaches the type's objects and, in the library's containers, the nodes that hold it
// as a key or value. A type of the program's that holds it by value needs a new version of its own.
//
// Types of the same name, size and alignment are taken for the same. The compiler spells types in
// unnamed namespaces, and local ones of the same function (clang: of all functions), alike if they
// are called alike: give those of which several may meet in a pool a tag. A hash table's hash is part
// of its types' names: declare it at namespace scope. GCC spells all structures without a name
// alike, those that `using` gives one included, and the lambdas of a function, or of none, that take
// the same parameters; clang spells a lambda by its line, and of the numbers in a template argument
// the first ten; what is declared in a generic lambda GCC spells by a number that other headers
// change. Without a tag types with such names are refused: `Id<decltype([] {})>` too. Not
// found out are arguments of placeholder type that GCC spells alike, 1 and 1L, clang's lambdas
// that are arguments by value, and what is declared in a lambda that is a template.
//
// What a container keeps are types of their own, whose default names contain those of its values:
// such a program tags Queue<Account>::Node and the like too: the public member types of a
// container's class that are objects (Header and, depending on the container, Node, Chunk, First,
// Last, Bucket, Directory, SmallDirectory, Leaf, Inner).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <span>
#include <string_view>
#include <type_traits>

#include <sp3/detail/export.h>
#include <sp3/detail/spelled_name.h>

namespace sp3 {

namespace detail {
// Trivially copyable, but what they refer to is elsewhere.
template <class T>
inline constexpr bool refers_elsewhere = false;
template <class C, class Traits>
inline constexpr bool refers_elsewhere<std::basic_string_view<C, Traits>> = true;
template <class T, std::size_t Extent>
inline constexpr bool refers_elsewhere<std::span<T, Extent>> = true;
template <class T>
inline constexpr bool refers_elsewhere<std::reference_wrapper<T>> = true;
template <class T>
inline constexpr bool refers_elsewhere<std::initializer_list<T>> = true;
}  // namespace detail

template <class T>
struct TypeTag {
  static_assert(!detail::is_unnamed(detail::spelled_name<T>()),
                "types without a name are spelled alike: one would be read as another");
  static_assert(
      !detail::is_of_lambda(detail::spelled_name<T>()),
      "types of lambdas, and types declared in generic ones, have no name of their own: give this "
      "one an sp3::TypeTag, or declare it elsewhere");
  static_assert(!detail::is_cut_short(detail::spelled_name<T>()),
                "the compiler leaves out a part of this type's name: give it an sp3::TypeTag");
  static constexpr std::string_view name = detail::spelled_name<T>();
  static constexpr std::uint32_t version = 1;
};

// What may live in a pool: bytes that mean the same after a copy. Members that point or refer to
// something elsewhere cannot be found out.
template <class T>
concept Storable =
    std::is_trivially_copyable_v<T> && !std::is_const_v<T> && !std::is_volatile_v<T> &&
    !std::is_pointer_v<T> && !std::is_member_pointer_v<T> && !std::is_reference_v<T> &&
    !detail::refers_elsewhere<T> && alignof(T) <= 64 &&
    sizeof(T) != 0;  // which GNU C++ gives to structures of arrays without elements

namespace detail {

// A type as the library sees it. `size` is sizeof(T); slots round it up to a multiple of 8.
struct TypeInfo {
  std::uint64_t fingerprint = 0;  // never 0
  std::uint32_t size = 0;
  std::uint32_t alignment = 0;
  void (*clear_padding)(void*) = nullptr;  // null where there is none to clear
  std::string_view name;                   // for errors: TypeTag's
};

constexpr std::uint64_t fnv1a(std::uint64_t hash, std::string_view text) {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return hash;
}

constexpr std::uint64_t fnv1a(std::uint64_t hash, std::uint64_t number) {
  for (int i = 0; i < 8; ++i, number >>= 8) hash = (hash ^ (number & 0xff)) * 0x100000001b3ULL;
  return hash;
}

// What an object of a container holds by value, as its member `using Holds = detail::Holds<K, V>;`.
// The list is a type of the library's, so that no alias in a program's type is taken for one.
template <class... Ts>
struct Holds {};

// The hash with those versions of what is held that are not 1: whoever holds first versions only
// has the fingerprint that it would have without a list.
template <class... Ts>
constexpr std::uint64_t mix_versions(std::uint64_t hash, Holds<Ts...> /*held*/) {
  std::uint64_t position = 0;
  const auto mix = [&](std::uint64_t version) {
    if (version != 1) hash = fnv1a(fnv1a(hash, position), version);
    ++position;
  };
  (mix(TypeTag<Ts>::version), ...);
  return hash;
}

template <class T>
concept HasHolds = requires {
  mix_versions(0, typename T::Holds());
};

template <Storable T>
constexpr std::uint64_t fingerprint_of() {
  std::uint64_t hash = fnv1a(0xcbf29ce484222325ULL, TypeTag<T>::name);
  hash = fnv1a(hash, TypeTag<T>::version);
  hash = fnv1a(hash, sizeof(T));
  hash = fnv1a(hash, alignof(T));
  if constexpr (HasHolds<T>) hash = mix_versions(hash, typename T::Holds());
  return hash == 0 ? 1 : hash;
}

// The largest type whose padding the compiler clears as it should. GCC (12, at the least) goes
// through an array of structures of more than eight words by a loop, and takes the padding behind
// it for bytes of the array, whose first elements it then zeroes. In a type as small as this there
// is no such array.
#if __has_builtin(__builtin_clear_padding)
inline constexpr std::size_t kMostClearable = 64;
#else
inline constexpr std::size_t kMostClearable = 0;
#endif

// Structures of floating-point numbers count as if they had some.
template <class T>
inline constexpr bool has_clearable_padding = sizeof(T) <= kMostClearable &&
                                              !std::has_unique_object_representations_v<T> &&
                                              !std::is_same_v<T, float> &&
                                              !std::is_same_v<T, double>;

// Zeroes the padding of an object, so that no stray bytes of the heap or the stack reach media.
// Where there is no such function, and in larger types, padding holds whatever the program's own
// copies left there.
template <class T>
requires has_clearable_padding<T>
void clear_padding_of(void* object) { __builtin_clear_padding(static_cast<T*>(object)); }

template <class T>
constexpr auto padding_cleaner() -> void (*)(void*) {
  if constexpr (has_clearable_padding<T>) {
    return &clear_padding_of<T>;
  } else {
    return nullptr;
  }
}

template <Storable T>
inline constexpr TypeInfo type_info{fingerprint_of<T>(), sizeof(T), alignof(T),
                                    padding_cleaner<T>(), TypeTag<T>::name};

}  // namespace detail
}  // namespace sp3
