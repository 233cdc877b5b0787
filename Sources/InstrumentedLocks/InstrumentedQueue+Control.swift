#if Detection
  internal import CHangcheck
  public import Dispatch
  internal import Recorder

  extension InstrumentedQueue {
    /// Lets the queue run its blocks on `queue`; equals `DispatchObject.setTarget(queue:)`.
    @inline(never) public func setTarget(queue: InstrumentedQueue) {
      let frame = hck_frame()
      checkTarget(queue.object, frame)
      original.setTarget(queue: queue.original)
    }

    /// Lets the queue run its blocks on one that is no drop-in.
    @inline(never) @_disfavoredOverload public func setTarget(queue: Dispatch.DispatchQueue) {
      let frame = hck_frame()
      checkTarget(DispatchObjects.object(behind: queue), frame)
      original.setTarget(queue: queue)
    }

    /// Lets a queue begin that was made `initiallyInactive`; equals `DispatchObject.activate()`.
    @inline(never) public func activate() {
      let frame = hck_frame()
      if let object, let slot = recordingSlot(word), hck_queue_is_inactive(object) != 0 {
        tally(slot, word, HCK_GIVE, frame)
      }
      original.activate()
    }

    /// Keeps the queue from running more blocks; equals `DispatchObject.suspend()`.
    @inline(never) public func suspend() {
      let frame = hck_frame()
      if let slot = recordingSlot(word), let object, hck_do_references(object) != Int32.max {
        tally(slot, word, HCK_TAKE, frame)
      }
      original.suspend()
    }

    /// Undoes one `suspend()`; equals `DispatchObject.resume()`.
    @inline(never) public func resume() {
      let frame = hck_frame()
      if let slot = recordingSlot(word), let object, hck_do_references(object) != Int32.max {
        if hck_queue_is_overresumed(object, 0) != 0 {
          raise(HCK_ALARM_OVERRESUMED, word, waits: true, frame)
        }
        tally(slot, word, HCK_GIVE, frame)
      }
      original.resume()
    }

    private func checkTarget(_ target: DispatchObjects.Object?, _ frame: UnsafeRawPointer) {
      guard let object, let target, recordingSlot(word) != nil,
        hck_queue_leads_to(target, object) != 0
      else { return }
      raise(HCK_ALARM_TARGET_CYCLE, word, waits: true, frame)
    }
  }
#endif
