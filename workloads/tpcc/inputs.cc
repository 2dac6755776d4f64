#include "workloads/tpcc/inputs.h"

#include <algorithm>
#include <cassert>
#include <tuple>

namespace sp3::workloads::tpcc {

namespace {

// Any warehouse but `home`. REQUIRES: there is another.
std::uint64_t remote_warehouse(Rng& rng, std::uint64_t home, std::uint64_t warehouses) {
  return (home + 1 + rng.below(warehouses - 1)) % warehouses;
}

std::uint64_t draw_customer(Rng& rng) {
  return nurand(rng, kCustomerMask, kCustomerShift, kCustomers);
}

}  // namespace

NewOrderInput new_order_input(const Operation& operation, std::uint64_t warehouses) {
  assert(operation.kind == OperationKind::new_order && operation.key < warehouses);
  Rng rng(operation.value);
  NewOrderInput input{};
  input.district = {.warehouse = operation.key, .district = rng.below(kDistricts)};
  input.customer = draw_customer(rng);
  input.entered = operation.value;
  input.count = kLeastLines + static_cast<unsigned>(rng.below(kMostLines - kLeastLines + 1));
  const bool rolled_back = rng.below(100) == 0;
  for (unsigned i = 0; i < input.count; ++i) {
    NewOrderInput::Line& line = input.lines[i];
    line.item = nurand(rng, kItemMask, kItemShift, kItems);
    line.quantity = 1 + rng.below(10);
    const bool remote = rng.below(100) == 0 && warehouses > 1;
    line.supplier = remote ? remote_warehouse(rng, operation.key, warehouses) : operation.key;
  }
  std::sort(input.lines.begin(), input.lines.begin() + input.count,
            [](const NewOrderInput::Line& a, const NewOrderInput::Line& b) {
              return std::tie(a.supplier, a.item) < std::tie(b.supplier, b.item);
            });
  if (rolled_back) input.lines[input.count - 1].item = kItems;
  return input;
}

PaymentInput payment_input(const Operation& operation, std::uint64_t warehouses) {
  assert(operation.kind == OperationKind::payment && operation.key < warehouses);
  Rng rng(operation.value);
  PaymentInput input{};
  input.district = {.warehouse = operation.key, .district = rng.below(kDistricts)};
  input.customer = input.district;
  if (rng.below(100) < 15) {
    // With one warehouse, at least another district as a rule.
    if (warehouses > 1) {
      input.customer.warehouse = remote_warehouse(rng, operation.key, warehouses);
    }
    input.customer.district = rng.below(kDistricts);
  }
  input.customer.number = draw_customer(rng);
  input.amount = static_cast<std::int64_t>(100 + rng.below(499'901));
  input.date = operation.value;
  return input;
}

}  // namespace sp3::workloads::tpcc
