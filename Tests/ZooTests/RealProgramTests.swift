import Foundation
import HangReport
import Testing

/// Programs that other people wrote, and shells that start them: nothing is reported, and what they say
/// and how they end is what it is without hangcheck.
@Suite("Real programs") struct RealProgramTests {
  struct Case: Sendable, CustomTestStringConvertible {
    var name: String
    /// What must be there for it to be tried.
    var needs: [String]
    /// Run by bash in a fresh folder.
    var script: String
    /// False where what it says has times in it.
    var isSameEachTime = true
    var testDescription: String { name }
  }

  static let cases = [
    Case(
      name: "git", needs: ["git"],
      script: """
        export HOME=$PWD GIT_AUTHOR_DATE=@0 GIT_COMMITTER_DATE=@0
        git init -q -b main r && cd r && git config user.name n && git config user.email e@e
        for i in 1 2 3 4 5; do echo $i > f$i; git add .; git commit -qm "commit $i"; done
        git gc -q --aggressive && git repack -adq --threads=2 && git fsck --no-progress
        git log --format='%h %s' && git grep -n 3 && git clone -q . ../copy && ls ../copy
        """),
    Case(
      name: "bash with a pipeline and a background job", needs: [],
      script: """
        trap 'echo over' EXIT
        seq 10000 | grep 7 | sort -n --parallel=2 | tail -n 3
        (sleep 0.2; echo late) & echo early; wait $!; echo $?
        cat <(echo one) <(echo two); set -o pipefail; false | true; echo $?
        timeout 0.1 sleep 5; echo $?
        exit 9
        """),
    Case(
      name: "sort and tar", needs: ["tar"],
      script: """
        seq 300000 | awk '{ print ($1 * 7919) % 300007 }' > n
        sort --parallel=4 -S 1M -n n | cksum; tar c n | cksum | wc -l; ls | xargs -P 4 -n 1 cksum
        """),
    Case(
      name: "python3 with threads", needs: ["python3"],
      script: """
        python3 - <<'E'
        import threading, subprocess, queue, multiprocessing
        from concurrent.futures import ThreadPoolExecutor
        lock, again, total = threading.Lock(), threading.RLock(), [0]
        def add(n):
            for _ in range(200):
                with lock:
                    with again:
                        with again: total[0] += n
            return n
        with ThreadPoolExecutor(8) as pool: print(sum(pool.map(add, range(50))), total[0])
        q = queue.Queue()
        t = threading.Thread(target=lambda: [q.put(i) for i in range(1000)]); t.start(); t.join()
        print(sum(q.get() for _ in range(1000)), lock.acquire(timeout=0.1), lock.acquire(timeout=0.1))
        print(subprocess.run(['sh', '-c', 'echo child; exit 3'], capture_output=True))
        done = threading.Event(); threading.Timer(0.2, done.set).start(); print(done.wait(5))
        def work(x): return x * x
        with multiprocessing.get_context('fork').Pool(3) as p: print(p.map(abs, range(-5, 5)))
        E
        """),
    Case(
      name: "make with jobs", needs: ["make"],
      script: """
        printf 'all: a b c\\na b c:\\n\\t@sleep 0.1; echo done > $@\\n' > Makefile
        make -s -j3; cat a b c; make -s missing; echo $?
        """),
    Case(
      name: "swift build and swift test of a small package", needs: ["swift"],
      script: """
        set -e
        mkdir small && cd small && swift package init --type library --name small > /dev/null
        swift build 2>&1 && swift test 2>&1
        """, isSameEachTime: false),
  ]

  @Test("stay as they are", arguments: cases)
  func same(_ item: Case) async throws {
    for program in item.needs where try !Self.isThere(program) { return }
    let watched = try await Self.inFolder { folder in
      try Watched.run(["--timeout", "240s"], Self.command(item, folder), limit: 280)
    }
    #expect(watched.unreadable == nil)
    #expect(watched.loud.isEmpty, "\(watched.loud.map(\.message))")
    #expect(!watched.outcome.leftOvers)
    guard item.isSameEachTime else {
      #expect(watched.outcome.status == .exited(0), "\(watched.outcome.outputText.suffix(2000))")
      return
    }
    let alone = try await Self.inFolder { folder in
      try Child.run(Self.command(item, folder), limit: 60)
    }
    #expect(watched.outcome.status == alone.status)
    #expect(watched.outcome.outputText == alone.outputText)
    #expect(watched.outcome.errorText == alone.errorText)
  }

  private static func command(_ item: Case, _ folder: String) -> [String] {
    ["/bin/bash", "-c", "cd \"$1\" && eval \"$0\"", item.script, folder]
  }
  private static func isThere(_ program: String) throws -> Bool {
    try Child.run(["/bin/sh", "-c", "command -v \(program)"], limit: 10).status == .exited(0)
  }
  private static func inFolder<T: Sendable>(_ run: @escaping @Sendable (String) throws -> T)
    async throws -> T
  {
    try await Gate.shared.pass {
      let folder = FileManager.default.temporaryDirectory.appending(path: "zoo-\(UUID())")
      try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
      defer { try? FileManager.default.removeItem(at: folder) }
      return try run(folder.path)
    }
  }
}
