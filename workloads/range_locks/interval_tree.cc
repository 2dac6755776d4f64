#include "workloads/range_locks/interval_tree.h"

#include <algorithm>

#include "workloads/rng.h"

namespace sp3::workloads {

void IntervalTree::update(Node* node) {
  node->largest_end = node->range.end;
  if (node->left != nullptr)
    node->largest_end = std::max(node->largest_end, node->left->largest_end);
  if (node->right != nullptr) {
    node->largest_end = std::max(node->largest_end, node->right->largest_end);
  }
}

IntervalTree::Node* IntervalTree::merge(Node* left, Node* right) {
  if (left == nullptr) return right;
  if (right == nullptr) return left;
  if (left->priority > right->priority) {
    left->right = merge(left->right, right);
    update(left);
    return left;
  }
  right->left = merge(left, right->left);
  update(right);
  return right;
}

// Into what comes before `at` and what comes behind it.
void IntervalTree::split(Node* tree, const Node* at, Node*& left, Node*& right) {
  if (tree == nullptr) {
    left = right = nullptr;
  } else if (is_before(tree, at)) {
    split(tree->right, at, tree->right, right);
    left = tree;
    update(tree);
  } else {
    split(tree->left, at, left, tree->left);
    right = tree;
    update(tree);
  }
}

IntervalTree::Node* IntervalTree::insert_into(Node* tree, Node* node) {
  if (tree == nullptr || tree->priority < node->priority) {
    split(tree, node, node->left, node->right);
    update(node);
    return node;
  }
  Node*& child = is_before(node, tree) ? tree->left : tree->right;
  child = insert_into(child, node);
  update(tree);
  return tree;
}

IntervalTree::Node* IntervalTree::erase_from(Node* tree, const Node* node) {
  if (tree == node) return merge(tree->left, tree->right);
  Node*& child = is_before(node, tree) ? tree->left : tree->right;
  child = erase_from(child, node);
  update(tree);
  return tree;
}

IntervalTree::Node* IntervalTree::insert(const Range& range, RangeMode mode) {
  Node* node = free_;
  if (node != nullptr) {
    free_ = node->left;
  } else {
    node = &nodes_.emplace_back();
  }
  random_ = mix64(random_);
  *node = {.range = range,
           .mode = mode,
           .number = ++arrivals_,
           .priority = static_cast<std::uint32_t>(random_ >> 32)};
  root_ = insert_into(root_, node);
  return node;
}

void IntervalTree::erase(Node* node) {
  root_ = erase_from(root_, node);
  node->left = free_;
  free_ = node;
}

}  // namespace sp3::workloads
