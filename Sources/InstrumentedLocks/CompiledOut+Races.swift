#if !Detection
  /// A value in a box: with the package's trait `Detection` off, nothing more.
  // Unchecked, as with detection.
  @propertyWrapper
  public final class RaceChecked<Value>: @unchecked Sendable {
    /// The value.
    public final var value: Value

    /// A box; its name and where it was made are not kept.
    @inlinable public init(
      wrappedValue: Value, name: String? = nil, fileID: StaticString = #fileID, line: UInt = #line
    ) { value = wrappedValue }

    /// A box; its name and where it was made are not kept.
    @inlinable public init(
      _ value: Value, name: String? = nil, fileID: StaticString = #fileID, line: UInt = #line
    ) { self.value = value }

    /// The value.
    @inlinable public var wrappedValue: Value {
      @inline(__always) get { value }
      @inline(__always) set { value = newValue }
      @inline(__always) _modify { yield &value }
    }

    /// The box itself.
    @inlinable public var projectedValue: RaceChecked<Value> { self }
  }
#endif
