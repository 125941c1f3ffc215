/*
 * meshfeed.hpp: meshfeed.h for C++17. Everything is inline, so a program links the C library and
 * nothing else. capi/README.md has a complete program.
 *
 *     Dataset, Layout, Loader   own a handle, and release it in their destructor
 *     Batch                     holds a reference to a batch; a copy holds another
 *     Tensor                    one block of a batch, valid as long as the batch
 *     Error                     the exception that a negative mf_status becomes
 *
 * Options are the structs of meshfeed.h. A text in them, such as mf_loader_options.order, must stay
 * valid until the constructor returns.
 *
 * call, text and Dataset::view take a function of the C library and its arguments without the last
 * ones: the result and the mf_error. So every function is at hand without a wrapper of its own:
 *
 *     std::string report = meshfeed::text(mf_layout_report, layout.get(), 0);
 *     meshfeed::Dataset part = dataset.view(mf_dataset_slice, 0, 1000);
 *
 * Threads, forks and ownership are as meshfeed.h describes them.
 */
#ifndef MESHFEED_HPP
#define MESHFEED_HPP

#include "meshfeed.h"

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace meshfeed {

/* An error of the library. what() has the message and the hint. */
class Error : public std::runtime_error {
public:
  explicit Error(const mf_error& error) : std::runtime_error(sentence(error)), error_(error) {}

  mf_status code() const noexcept { return error_.code; }     // such as MF_NOT_FOUND
  const mf_error& details() const noexcept { return error_; } // op, message, hint and path

private:
  static std::string sentence(const mf_error& error) {
    std::string text = std::string(error.op) + ": " + error.message;
    return error.hint[0] ? text + "; " + error.hint : text;
  }

  mf_error error_;
};

/* Calls a function of the library with the arguments and an mf_error. Returns MF_OK or a positive
   outcome, and throws Error for a negative status. */
template <class Function, class... Arguments> mf_status call(Function function, Arguments... arguments) {
  mf_error error = MF_ERROR_INIT;
  const mf_status status = function(arguments..., &error);
  if (status < 0)
    throw Error(error);
  return status;
}

/* Calls a function that returns an mf_bytes, and returns its bytes. Throws Error. */
template <class Function, class... Arguments> std::string text(Function function, Arguments... arguments) {
  mf_bytes bytes = {nullptr, 0};
  call(function, arguments..., &bytes);
  const struct Free {
    mf_bytes* bytes;
    ~Free() { mf_bytes_free(bytes); }
  } free{&bytes};
  return std::string(bytes.data, bytes.size);
}

/* Owns a handle of one kind. A moved-from object owns nothing. */
template <class Handle> class Owned {
public:
  explicit Owned(Handle handle) noexcept : handle_(handle) {}
  Owned(Owned&& other) noexcept : handle_(std::exchange(other.handle_, Handle{})) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Owned() { mf_release(handle_.id, nullptr); }

  Handle get() const noexcept { return handle_; }

private:
  Handle handle_;
};

/* The records of files, or a view of another dataset. */
class Dataset : public Owned<mf_dataset> {
public:
  using Owned::Owned;

  /* Opens files, globs and directories, and waits until they are open. Throws Error. */
  explicit Dataset(const std::vector<std::string>& paths,
                   const mf_dataset_options& options = MF_DATASET_OPTIONS_INIT)
      : Owned(open(paths, options)) {
    call(mf_wait, get().id, std::int64_t{-1});
  }

  /* Makes a view by a function such as mf_dataset_slice. Throws Error. */
  template <class Function, class... Arguments>
  Dataset view(Function function, Arguments... arguments) const {
    mf_dataset made{};
    call(function, get(), arguments..., &made);
    return Dataset(made);
  }

private:
  static mf_dataset open(const std::vector<std::string>& paths, const mf_dataset_options& options) {
    std::vector<const char*> names;
    for (const std::string& path : paths)
      names.push_back(path.c_str());
    mf_dataset made{};
    call(mf_dataset_open, names.data(), static_cast<std::int32_t>(names.size()), &options, &made);
    return made;
  }
};

/* A parsed layout document. */
class Layout : public Owned<mf_layout> {
public:
  using Owned::Owned;

  /* Parses a document. Throws Error. A document with problems makes a layout that a Loader refuses. */
  explicit Layout(std::string_view document) : Owned(parse(document)) {}

private:
  static mf_layout parse(std::string_view document) {
    mf_layout made{};
    call(mf_layout_create, document.data(), document.size(), &made);
    return made;
  }
};

/* One block of a batch. The pointers are valid as long as the batch. */
struct Tensor : mf_tensor {
  /* Returns the elements in C order. Throws std::invalid_argument if they are not of type T. */
  template <class T> const T* values() const {
    static_assert(std::is_arithmetic_v<T>, "values of this type are not known; use data");
    constexpr int code = std::is_same_v<T, bool>       ? MF_BOOL
                         : std::is_floating_point_v<T> ? MF_FLOAT
                         : std::is_signed_v<T>         ? MF_INT
                                                       : MF_UINT;
    if (dtype.code != code || dtype.bits != 8 * sizeof(T))
      throw std::invalid_argument(std::string("meshfeed: array ") + name + " has elements of DLPack type (" +
                                  std::to_string(dtype.code) + ", " + std::to_string(dtype.bits) +
                                  " bits), but (" + std::to_string(code) + ", " +
                                  std::to_string(8 * sizeof(T)) + " bits) were asked for");
    return static_cast<const T*>(data);
  }
};

/* A reference to a batch. A moved-from object has none: it may be assigned to and destroyed, and nothing
 * else. */
class Batch {
public:
  explicit Batch(mf_batch* batch) noexcept : batch_(batch) {} // takes the reference of the caller
  Batch(const Batch& other) noexcept : batch_(other.batch_) { mf_batch_retain(batch_); }
  Batch(Batch&& other) noexcept : batch_(std::exchange(other.batch_, nullptr)) {}
  Batch& operator=(Batch other) noexcept {
    std::swap(batch_, other.batch_);
    return *this;
  }
  ~Batch() { mf_batch_release(batch_); }

  mf_batch* get() const noexcept { return batch_; }
  const mf_batch* operator->() const noexcept { return batch_; }

  /* The state of the loader after this batch, for mf_loader_options.state. */
  std::string state() const {
    return std::string(batch_->state, static_cast<std::size_t>(batch_->state_size));
  }

  /* Returns the blocks, in the order of mf_loader_info. */
  std::vector<Tensor> tensors() const {
    std::vector<Tensor> all;
    for (std::int32_t i = 0; i < batch_->tensors; i++) {
      Tensor tensor{MF_TENSOR_INIT};
      mf_batch_tensor(batch_, i, &tensor);
      all.push_back(tensor);
    }
    return all;
  }

private:
  mf_batch* batch_;
};

/* Reads the batches of one process ahead, in order. A range-for loop takes those that are left:

       for (const meshfeed::Batch& batch : loader) ...
*/
class Loader : public Owned<mf_loader> {
public:
  using Owned::Owned;

  /* Starts to load, and waits until the options and the files are checked. Throws Error. */
  Loader(const Dataset& dataset, const Layout& layout,
         const mf_loader_options& options = MF_LOADER_OPTIONS_INIT)
      : Owned(make(dataset, layout, options)) {
    call(mf_wait, get().id, std::int64_t{-1});
  }

  /* Waits for the next batch. The end of a pass is an empty optional. Throws Error. */
  std::optional<Batch> next() {
    mf_batch* batch = nullptr;
    call(mf_loader_next, get(), std::int64_t{-1}, &batch);
    return batch ? std::optional<Batch>(Batch(batch)) : std::nullopt;
  }

  /* The state after the last batch that next returned. Throws Error. */
  std::string state() const { return text(mf_loader_state, get()); }

  class Iterator {
  public:
    using iterator_category = std::input_iterator_tag;
    using value_type = Batch;
    using difference_type = std::ptrdiff_t;
    using pointer = const Batch*;
    using reference = const Batch&;

    explicit Iterator(Loader* loader) : loader_(loader) { ++*this; }
    Iterator() noexcept = default; // the end

    reference operator*() const { return *batch_; }
    pointer operator->() const { return &*batch_; }
    Iterator& operator++() {
      batch_.reset(); // its memory serves a later batch
      batch_ = loader_->next();
      return *this;
    }
    bool operator==(const Iterator& other) const { return batch_.has_value() == other.batch_.has_value(); }
    bool operator!=(const Iterator& other) const { return !(*this == other); }

  private:
    Loader* loader_ = nullptr;
    std::optional<Batch> batch_;
  };

  Iterator begin() { return Iterator(this); }
  Iterator end() { return {}; }

private:
  static mf_loader make(const Dataset& dataset, const Layout& layout, const mf_loader_options& options) {
    mf_loader made{};
    call(mf_loader_create, dataset.get(), layout.get(), &options, &made);
    return made;
  }
};

} // namespace meshfeed

#endif
